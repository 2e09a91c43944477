// The table of all kernels of matrix products that the process has made.
#pragma once

#include "absl/status/statusor.h"
#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// Returns the kernels of a shape, which the first call makes and checks (kernel_check.h); those of
// the AMX GEMM and of the vector GEMM agree by construction. Thread-safe. INTERNAL if oneDNN
// refuses.
absl::StatusOr<const PanelKernels*> FindPanelKernels(const PanelShape& shape);

}  // namespace attendant
