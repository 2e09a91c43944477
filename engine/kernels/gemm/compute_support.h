// The compute types that this CPU supports.
#pragma once

#include "absl/status/status.h"
#include "engine/base/compute_type.h"

namespace attendant {

// Checks that models can be computed in this mode. Returns FAILED_PRECONDITION if the CPU, after
// the cap, has no units for such products, or oneDNN does not use them; the message names the type,
// what it needs and what there is. (kBf16x3 on units for bfloat16 other than AMX would be slower
// than kF32 and is refused.) The error is FAILED_PRECONDITION too if the AMX GEMM are
// requested on a CPU without AMX. Returns INVALID_ARGUMENT for emulation of f32, for the AMX GEMM
// with f32 or with emulation, for the vector GEMM with bf16 or bf16x3 that are not emulated, for a
// weight type with a compute type other than f32, and for 16-bit weights with oneDNN. Thread-safe.
absl::Status CheckComputeMode(const ComputeMode& mode);

}  // namespace attendant
