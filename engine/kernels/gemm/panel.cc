#include "engine/kernels/gemm/panel.h"

namespace attendant {

using dnnl::memory;

void Panel::Place(char* packed, float* bias_of_columns) {
  const PanelShape& shape = kernels->shape;
  const dnnl::engine& engine = onednn::CpuEngine();
  bias = memory(onednn::RowMajor(onednn::DataType::f32, 1, shape.width), engine, bias_of_columns);
  for (int64_t block = 0; block < shape.blocks(); ++block, packed += kernels->block_bytes) {
    blocks.push_back(packed);
    if (shape.gemm == Gemm::kOneDnn) weights.emplace_back(kernels->weights, engine, packed);
  }
}

void Panel::Pack(const WeightRows& rows) {
  const PanelShape& shape = kernels->shape;
  const int64_t element_bytes = onednn::ByteWidth(shape.element);
  const memory::desc transposed({shape.k_block, shape.width}, shape.element,
                                memory::dims{1, rows.row_stride / element_bytes});
  const dnnl::engine& engine = onednn::CpuEngine();
  dnnl::stream stream(engine);
  for (int64_t i = 0; i < shape.blocks(); ++i) {
    const int64_t k = i / shape.parts, part = i % shape.parts;
    const char* const block =
        rows.data + part * rows.part_stride + k * shape.k_block * element_bytes;
    const WeightBlock own = {block, rows.row_stride, shape.k_block, shape.width};
    if (shape.gemm == Gemm::kTiles) {
      PackAmxWeight(shape.gemm_element(), own, blocks[i]);
    } else if (shape.gemm == Gemm::kVector) {
      PackVectorWeight(shape.gemm_element(), own, blocks[i]);
    } else {
      memory source(transposed, engine, const_cast<char*>(block));
      dnnl::reorder(source, weights[i]).execute(stream, source, weights[i]);
    }
  }
  stream.wait();
}

}  // namespace attendant
