// Which compute types this CPU has.
#pragma once

#include "absl/status/status.h"
#include "engine/base/compute_type.h"

namespace attendant {

// Whether models can be computed so. FAILED_PRECONDITION: the CPU, after the cap, has no units for
// such products, or oneDNN does not use them; the message names the type, what it needs and what is
// there. (kBf16x3 on units for bfloat16 other than AMX would be slower than kF32, and is refused.)
// FAILED_PRECONDITION too if the AMX GEMM is wanted on a CPU without AMX. INVALID_ARGUMENT:
// emulation of f32; the AMX GEMM for f32, or emulated. Thread-safe.
absl::Status CheckComputeMode(const ComputeMode& mode);

}  // namespace attendant
