// A panel, one of the parts into which the weight of a linear layer is cut.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// The weights for some neighbouring columns of the result. Does not own the blocks.
struct Panel {
  int64_t begin;
  const PanelKernels* kernels;
  // The packed weights of each block of the shape (PanelShape), and oneDNN's view of each, which
  // panels for the AMX GEMM do not have.
  std::vector<char*> blocks = {};
  std::vector<dnnl::memory> weights = {};
  dnnl::memory bias = {};
};

}  // namespace attendant
