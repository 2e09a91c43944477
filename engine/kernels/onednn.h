// The oneDNN adapter of this directory. Hides the differences between versions 2 and 3, and creates
// products that run on one thread.
#pragma once

#include <cstdint>

#include "oneapi/dnnl/dnnl.hpp"

namespace attendant::onednn {

using DataType = dnnl::memory::data_type;

// Returns the CPU engine of the process. Thread-safe.
const dnnl::engine& CpuEngine();

// Returns the size of an element in bytes.
int64_t ByteWidth(DataType type);

// Describes a matrix [rows, cols] whose rows are `stride` elements apart.
dnnl::memory::desc RowMajor(DataType type, int64_t rows, int64_t cols, int64_t stride);

// Describes a matrix [rows, cols] in a layout that oneDNN chooses.
dnnl::memory::desc AnyLayout(DataType type, int64_t rows, int64_t cols);

// The arguments of y[rows, out] = x[rows, in] weights[in, out] + bias[1, out]. The bias is float32.
struct MatmulOperands {
  dnnl::memory::desc x;
  dnnl::memory::desc weights;
  dnnl::memory::desc y;
  int64_t out;
  bool has_bias;
  bool add_to_y;  // whether to add to y instead of overwriting it
};

// Describes a product that is executed with a scratchpad of the caller. Throws dnnl::error.
dnnl::matmul::primitive_desc DescribeMatmul(const MatmulOperands& operands);

// While an object of this class exists, primitives that its thread creates or runs use only that
// thread.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int saved_;
};

}  // namespace attendant::onednn
