// The compute modes that this CPU supports.
#pragma once

#include "absl/status/status.h"
#include "engine/base/compute_type.h"

namespace attendant {

// Checks that this CPU can compute models in `mode`. Thread-safe.
//
// Returns FAILED_PRECONDITION if the CPU, after the cap, lacks the units for such products or
// oneDNN does not use them, or if the AMX GEMM is requested on a CPU without AMX. The message names
// the compute type and the instruction sets that it requires and that the CPU has. kBf16x3 requires
// AMX: on other bf16 units it would hardly be faster than kF32, or slower.
//
// Returns INVALID_ARGUMENT for emulation of f32, for the AMX GEMM with f32 or emulation, for the
// vector GEMM with bf16x3 or, except on arm64, bf16 without emulation, for a weight type with a
// compute type other than f32, and for 16-bit weights with oneDNN.
absl::Status CheckComputeMode(const ComputeMode& mode);

}  // namespace attendant
