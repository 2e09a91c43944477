// A panel, one of the parts into which the weight of a linear layer is cut.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/base/rounding.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// Returns the most columns that a thread computes of one row tile, if `threads` threads share
// panels of `width` columns of a layer with `out` outputs.
inline int64_t ColumnsPerThread(int64_t out, int64_t width, int threads) {
  return CeilDivide(CeilDivide(out, width), threads) * width;
}

// Returns the width of all panels but the last: as wide as possible, since wide panels are faster,
// unless a short batch would then leave some threads with a third less work than others.
inline int64_t PanelWidth(int64_t out, int threads) {
  const int64_t panels = CeilDivide(out, kPanelWidth);
  const int64_t widest = RoundUp(CeilDivide(out, panels), kPanelWidthMultiple);
  int64_t best = widest;
  for (int64_t width = widest; width > 0; width -= kPanelWidthMultiple) {
    if (3 * ColumnsPerThread(out, width, threads) <= 2 * ColumnsPerThread(out, best, threads)) {
      best = width;
    }
  }
  return best;
}

// Rows of W, in the elements of the products: part p of row r is dense and begins
// p * part_stride + r * row_stride bytes after `data`.
struct WeightRows {
  const char* data;
  int64_t row_stride;
  int64_t part_stride;
};

// The weights for some neighbouring columns of the result. Does not own them.
struct Panel {
  int64_t begin;
  const PanelKernels* kernels;
  // The packed weights of each block of the shape (PanelShape), and oneDNN's view of each, which
  // panels for the other kernels do not have.
  std::vector<char*> blocks = {};
  std::vector<dnnl::memory> weights = {};
  dnnl::memory bias = {};

  // Gives the panel its memory: bytes() aligned to 64 for the weights, and a bias of as many floats
  // as it has columns.
  void Place(char* packed, float* bias_of_columns);
  // Packs the weights of its columns, whose rows of W are those from `rows` on. Throws dnnl::error.
  void Pack(const WeightRows& rows);

  int64_t bytes() const { return kernels->shape.blocks() * kernels->block_bytes; }
};

}  // namespace attendant
