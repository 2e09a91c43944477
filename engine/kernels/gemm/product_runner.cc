#include "engine/kernels/gemm/product_runner.h"

#include <cstring>
#include <iterator>
#include <new>

#include "engine/base/rounding.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {

using dnnl::memory;

void ProductRunner::Reserve(const PanelKernels& kernels) {
  const PanelShape& shape = kernels.shape;
  for (const TileKernel& kernel : kernels.tiles) {
    y_.GrowTo(PaddedRows(kernel.rows) * shape.width);
    if (shape.gemm != Gemm::kOneDnn || memories_.contains(&kernel.first)) continue;
    Reserve(kernel.first);
    if (shape.products() > 1) Reserve(kernel.next);
    staged_x_.GrowTo(kernel.rows * shape.block_row_bytes());
  }
}

void ProductRunner::Reserve(const Product& product) {
  const dnnl::engine& engine = onednn::CpuEngine();
  memories_[&product] = {memory(product.x, engine, nullptr), memory(product.y, engine, nullptr),
                         memory(product.scratchpad, engine, nullptr)};
  scratchpad_.GrowTo(static_cast<int64_t>(product.scratchpad.get_size()));
}

MatrixView<float> ProductRunner::Run(const Panel& panel, const RowBlock& block,
                                     const PackedInputView& x) {
  const PanelShape& shape = panel.kernels->shape;
  const MatrixView<float> result{y_.data(), block.rows, shape.width, shape.width};
  const bool direct =
      block.kernel->rows <= PaddedRows(block.rows) && x.row_stride == shape.block_row_bytes();
  for (int64_t i = 0; i < shape.products(); ++i) {
    if (shape.gemm != Gemm::kOneDnn) {
      RunGemm(panel, block, x, i);
      continue;
    }
    const int64_t x_block = shape.product(i).x;
    const char* rows = direct ? x.row(x_block, block.begin) : Stage(shape, block, x, x_block);
    Execute(panel, *block.kernel, i, rows);
  }
  return result;
}

const char* ProductRunner::Stage(const PanelShape& shape, const RowBlock& block,
                                 const PackedInputView& x, int64_t x_block) {
  const int64_t row_bytes = shape.block_row_bytes();
  for (int64_t r = 0; r < block.rows; ++r) {
    std::memcpy(staged_x_.data() + r * row_bytes, x.row(x_block, block.begin + r), row_bytes);
  }
  std::memset(staged_x_.data() + block.rows * row_bytes, 0,
              (block.kernel->rows - block.rows) * row_bytes);
  return staged_x_.data();
}

void ProductRunner::Execute(const Panel& panel, const TileKernel& kernel, int64_t index,
                            const char* x) {
  const Product& product = index == 0 ? kernel.first : kernel.next;
  const memory& weights = panel.weights[panel.kernels->shape.product(index).weights];
  const Memories& operands = memories_.find(&product)->second;
  operands.x.set_data_handle(const_cast<char*>(x));
  operands.y.set_data_handle(y_.data());
  operands.scratchpad.set_data_handle(scratchpad_.data());
  // The C API, because the C++ API would allocate containers on the heap for each product.
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, operands.x.get()},
                                       {DNNL_ARG_WEIGHTS, weights.get()},
                                       {DNNL_ARG_DST, operands.y.get()},
                                       {DNNL_ARG_SCRATCHPAD, operands.scratchpad.get()},
                                       {DNNL_ARG_BIAS, panel.bias.get()}};
  const bool has_bias = panel.kernels->shape.has_bias && index == 0;
  const int count = static_cast<int>(std::size(arguments)) - (has_bias ? 0 : 1);
  // oneDNN stores the arguments in a map, for which there may not be enough memory.
  const dnnl_status_t status =
      dnnl_primitive_execute(product.primitive.get(), stream_.get(), count, arguments);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  dnnl::error::wrap_c_api(status, "oneDNN failed to execute a matrix product");
}

void ProductRunner::RunGemm(const Panel& panel, const RowBlock& block, const PackedInputView& x,
                            int64_t index) {
  const PanelShape& shape = panel.kernels->shape;
  const Factors factors = shape.product(index);
  const bool has_bias = shape.has_bias && index == 0;
  const BlockGemm gemm = {
      .element = shape.gemm_element(),
      .in = shape.k_block,
      .width = shape.width,
      // Both x and y_ have memory for these rows.
      .rows =
          shape.gemm == Gemm::kTiles ? PaddedRows(block.rows) : RoundUp(block.rows, kSmallRowTile),
      .x = x.row(factors.x, block.begin),
      .x_row_bytes = x.row_stride,
      .weight = panel.blocks[factors.weights],
      .bias = has_bias ? static_cast<const float*>(panel.bias.get_data_handle()) : nullptr,
      .add_to_y = index > 0,
      .sum_block = panel.kernels->sum_block,
      .y = y_.data(),
      .y_stride = shape.width};
  shape.gemm == Gemm::kTiles ? RunAmxGemm(gemm) : RunVectorGemm(gemm);
}

}  // namespace attendant
