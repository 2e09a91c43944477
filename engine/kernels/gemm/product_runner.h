// ProductRunner: computes the products of panels on one thread.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/operand_buffer.h"
#include "engine/kernels/gemm/panel.h"
#include "engine/kernels/gemm/row_blocks.h"

namespace attendant {

// The memory that products need apart from their operands. Movable; one thread at a time may use
// it.
class ProductRunner {
 public:
  // Makes room for products by these kernels, which must outlive this.
  void Reserve(const PanelKernels& kernels);

  // Multiplies the block's rows of x by the panel's weights, and adds its bias if the shape has
  // one. Returns [block.rows, width] of the shape's result type, dense, in memory of the runner,
  // which is in the thread's caches. The result is valid until the next Run. Needs no memory of
  // its own after Reserve; throws std::bad_alloc if oneDNN finds none, and dnnl::error for its
  // other errors.
  MatrixView<float> Run(const Panel& panel, const RowBlock& block, const Operand& x);

 private:
  // The operands of a oneDNN product; only their addresses change between runs.
  struct Memories {
    dnnl::memory x;
    dnnl::memory y;
    dnnl::memory scratchpad;
  };

  void Reserve(const Product& product);
  // Computes product `index` of the block by the AMX GEMM or the vector GEMM.
  void RunGemm(const Panel& panel, const RowBlock& block, const Operand& x, int64_t index);
  // Returns the rows of block `x_block` of x, followed by zeros up to the kernel's rows.
  const char* Stage(const PanelShape& shape, const RowBlock& block, const Operand& x,
                    int64_t x_block);
  // Computes the product of this number, whose rows of x are at `x`.
  void Execute(const Panel& panel, const TileKernel& kernel, int64_t index, const char* x);

  dnnl::stream stream_{onednn::CpuEngine()};
  AlignedBuffer<char> scratchpad_;
  AlignedBuffer<char> staged_x_;  // for rows that do not lie as the kernel wants them
  AlignedBuffer<float> y_;        // of the last product
  absl::flat_hash_map<const Product*, Memories> memories_;
};

}  // namespace attendant
