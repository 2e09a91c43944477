// The choice between oneDNN's matrix products, the AMX GEMM and the vector GEMM for a linear layer.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/compute_type.h"

namespace attendant {

struct GemmChoice {
  Gemm gemm = Gemm::kOneDnn;  // not kAuto
  double tiles_speedup = 0;   // see ProductPlan
};

// The shape of a weight.
struct ProductShape {
  int64_t in;
  int64_t out;
  int64_t k_block;
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

// The least ratio of speeds at which kAuto leaves oneDNN.
inline constexpr double kWorthwhileSpeedup = 1.15;

// Returns true if `mode` asks for the vector GEMM, or is kAuto and the table in gemm_choice.cc has
// the vector GEMM for this CPU. (Float32 products with 16-bit weights use the vector GEMM on every
// CPU.)
bool UsesVectorGemm(const ComputeMode& mode);

// Returns the matrix product that `mode` asks for. Where UsesVectorGemm is false, kAuto is the AMX
// GEMM if the CPU has AMX, x fills its tiles, a trial gives the bits that oneDNN's give, and both a
// few and many rows are faster by kWorthwhileSpeedup: so that the choice, which noise may decide,
// changes no bit. kTiles is oneDNN's where x does not fill tiles. Trials are made once for each
// mode and shape, with up to 768 outputs. Thread-safe. Errors are those of PackedLinear::Pack.
absl::StatusOr<GemmChoice> ChooseGemm(const ComputeMode& mode, const ProductShape& shape);

// Exposed for its test: how often faster `tiles` is than `onednn`, by the best of some runs of each
// by turns. `before_each` of them is not timed.
struct Contest {
  absl::FunctionRef<void()> tiles;
  absl::FunctionRef<void()> onednn;
  absl::FunctionRef<void()> before_each;
};
double SpeedupOf(const Contest& contest, absl::FunctionRef<absl::Time()> now);

}  // namespace attendant
