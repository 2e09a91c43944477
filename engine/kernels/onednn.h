// What differs between oneDNN 2 and 3, and how this folder calls oneDNN: products on one thread.
#pragma once

#include <cstdint>

#include "oneapi/dnnl/dnnl.hpp"

namespace attendant::onednn {

using DataType = dnnl::memory::data_type;

// The CPU, for the whole process. Thread-safe.
const dnnl::engine& CpuEngine();

// Bytes of one element.
int64_t ByteWidth(DataType type);

// [rows, cols]; row r starts `stride` elements after row r - 1.
dnnl::memory::desc RowMajor(DataType type, int64_t rows, int64_t cols, int64_t stride);

// [rows, cols] in whatever layout oneDNN likes best.
dnnl::memory::desc AnyLayout(DataType type, int64_t rows, int64_t cols);

// y[rows, out] = x[rows, in] weights[in, out] + bias[1, out] of float32.
struct MatmulOperands {
  dnnl::memory::desc x;
  dnnl::memory::desc weights;
  dnnl::memory::desc y;
  int64_t out;
  bool has_bias;
  bool add_to_y;  // y += instead
};

// With its scratchpad given by the caller of each execution. Throws dnnl::error.
dnnl::matmul::primitive_desc DescribeMatmul(const MatmulOperands& operands);

// While one lives, primitives that its thread creates or runs use that thread alone.
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
