// What a linear layer's weight is cut into.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// Some neighbouring columns of the result.
struct Panel {
  int64_t begin;
  const PanelKernels* kernels;
  // Of each block of the shape; the memories are oneDNN's view of them, none of the AMX GEMM.
  std::vector<char*> blocks = {};
  std::vector<dnnl::memory> weights = {};
  dnnl::memory bias = {};
};

}  // namespace attendant
