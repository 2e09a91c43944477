// Panel: some adjacent outputs of a linear layer, with their packed weights.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/rounding.h"
#include "engine/kernels/gemm/kernel_table.h"
#include "engine/kernels/gemm/product_plan.h"

namespace attendant {

// Returns the largest number of columns of a row tile that one thread computes, if `threads`
// threads share the panels of `width` columns of a layer with `out` outputs.
inline int64_t ColumnsPerThread(int64_t out, int64_t width, int threads) {
  return CeilDivide(CeilDivide(out, width), threads) * width;
}

// Returns the width of all panels except the last. Wide panels are faster, so it is the largest
// width for which short batches do not leave some threads with a third less work than others.
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

// Rows of W in the number format of the products. Part p of row r is dense and starts at data + p *
// part_stride + r * row_stride.
struct WeightRows {
  const char* data;
  int64_t row_stride;
  int64_t part_stride;
};

// The weights of some adjacent columns of y. Does not own them.
struct Panel {
  int64_t begin;  // the first column
  const PanelKernels* kernels;
  // The packed weights of each block of the shape (PanelShape), and oneDNN's view of each. Panels
  // of other implementations do not have the views.
  std::vector<char*> blocks = {};
  std::vector<dnnl::memory> weights = {};
  dnnl::memory bias = {};

  // Sets the panel's memory: `packed` has bytes() bytes, aligned to 64, and `bias_of_columns` has
  // one float per column. Both must outlive the panel.
  void Place(char* packed, float* bias_of_columns);
  // Packs the weights of its columns. `rows` begins at its first row of W. Throws dnnl::error.
  void Pack(const WeightRows& rows);

  int64_t bytes() const { return kernels->shape.blocks() * kernels->block_bytes; }
};

}  // namespace attendant
