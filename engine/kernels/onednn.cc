#include "engine/kernels/onednn.h"

#include <omp.h>

namespace attendant::onednn {

using dnnl::memory;

const dnnl::engine& CpuEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

int64_t ByteWidth(DataType type) { return static_cast<int64_t>(memory::data_type_size(type)); }

memory::desc RowMajor(DataType type, int64_t rows, int64_t cols) {
  return memory::desc({rows, cols}, type, memory::dims{cols, 1});
}

memory::desc AnyLayout(DataType type, int64_t rows, int64_t cols) {
  return memory::desc({rows, cols}, type, memory::format_tag::any);
}

dnnl::matmul::primitive_desc DescribeMatmul(const memory::desc& x, const memory::desc& weights,
                                            const memory::desc& bias, const memory::desc& y,
                                            bool add_to_y) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (add_to_y) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(CpuEngine(), x, weights, bias, y, attributes);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(x, weights, bias, y), attributes,
                                      CpuEngine());
#endif
}

SingleThreaded::SingleThreaded() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }

SingleThreaded::~SingleThreaded() { omp_set_num_threads(saved_); }

}  // namespace attendant::onednn
