// The process-wide table of matrix product kernels.
#pragma once

#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// Returns the kernels of a shape, which live as long as the process. The first call creates them
// and runs their self-tests (kernel_check.h). Kernels of the AMX GEMM and the vector GEMM agree by
// construction. Thread-safe. Throws dnnl::error if oneDNN fails.
const PanelKernels& FindPanelKernels(const PanelShape& shape);

}  // namespace attendant
