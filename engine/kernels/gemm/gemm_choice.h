// Chooses between oneDNN, the AMX GEMM and the vector GEMM for a linear layer.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/compute_type.h"
#include "engine/kernels/gemm/product_plan.h"

namespace attendant {

// The smallest speedup over oneDNN for which kAuto chooses the AMX GEMM.
inline constexpr double kWorthwhileSpeedup = 1.15;

// Whether the table in gemm_choice.cc has the vector GEMM for this CPU and the type of `mode`.
bool IsForVectorGemm(const ComputeMode& mode);

// Whether `mode` requests the vector GEMM, or is kAuto and IsForVectorGemm. (Float32 products with
// 16-bit weights use the vector GEMM on every CPU.)
bool UsesVectorGemm(const ComputeMode& mode);

// Sets the implementation that `mode` requests, and the measured speedup, for the sizes of `plan`.
// If UsesVectorGemm is false, kAuto selects the AMX GEMM if the CPU has AMX, x fills its tiles, a
// self-test gives the same bits as oneDNN, and a benchmark is faster by kWorthwhileSpeedup for few
// and for many rows. So noise may decide the choice but never changes bits. kTiles selects oneDNN
// if x does not fill tiles. The self-test and the benchmark run once per mode and sizes, with up to
// 768 outputs. Thread-safe. Returns the errors of PackedLinear::Pack.
absl::Status ChooseGemm(const ComputeMode& mode, ProductPlan& plan);

// Returns the speedup of `tiles` over `onednn`: the ratio of the best times of several alternating
// runs. `before_each` precedes every run and is not timed. Exposed for testing.
struct SpeedTest {
  absl::FunctionRef<void()> tiles;
  absl::FunctionRef<void()> onednn;
  absl::FunctionRef<void()> before_each;
};
double SpeedupOf(const SpeedTest& speed_test, absl::FunctionRef<absl::Time()> now);

}  // namespace attendant
