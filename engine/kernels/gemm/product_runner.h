// ProductRunner: computes the products of panels on one thread.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/packed_input_buffer.h"
#include "engine/kernels/gemm/panel.h"

namespace attendant {

// Owns scratch memory. Movable. Not thread-safe: each worker has its own runner.
class ProductRunner {
 public:
  // Reserves memory for products of these kernels, which must outlive the runner.
  void Reserve(const PanelKernels& kernels);

  // Multiplies the block's rows of x by the panel's weights, and adds the bias if the shape has
  // one. Returns a dense matrix [block.rows, width] of the shape's result type, in memory of the
  // runner that is likely to be in cache. The result is valid until the next Run. Does not allocate
  // after Reserve. Throws std::bad_alloc if oneDNN runs out of memory, and dnnl::error for other
  // errors of oneDNN.
  MatrixView<float> Run(const Panel& panel, const RowBlock& block, const PackedInputView& x);

 private:
  // The arguments of a oneDNN product. Only their addresses change between runs.
  struct Memories {
    dnnl::memory x;
    dnnl::memory y;
    dnnl::memory scratchpad;
  };

  void Reserve(const Product& product);
  // Computes product `index` of the block with the AMX GEMM or the vector GEMM.
  void RunGemm(const Panel& panel, const RowBlock& block, const PackedInputView& x, int64_t index);
  // Returns a dense copy of the rows of block `x_block` of x, with zeros up to the kernel's number
  // of rows.
  const char* Stage(const PanelShape& shape, const RowBlock& block, const PackedInputView& x,
                    int64_t x_block);
  // Computes product `index` with the rows of x at `x`.
  void Execute(const Panel& panel, const TileKernel& kernel, int64_t index, const char* x);

  dnnl::stream stream_{onednn::CpuEngine()};
  AlignedBuffer<char> scratchpad_;
  AlignedBuffer<char> staged_x_;  // rows of x that had to be copied for the kernel
  AlignedBuffer<float> y_;        // of the last product
  absl::flat_hash_map<const Product*, Memories> memories_;
};

}  // namespace attendant
