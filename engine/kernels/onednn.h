// The adapter to oneDNN for this folder: it hides the differences between versions 2 and 3, and
// makes products that run on one thread.
#pragma once

#include <cstdint>

#include "oneapi/dnnl/dnnl.hpp"

namespace attendant::onednn {

using DataType = dnnl::memory::data_type;

// Returns the CPU engine, one for the whole process. Thread-safe.
const dnnl::engine& CpuEngine();

// Returns the size of one element in bytes.
int64_t ByteWidth(DataType type);

// Describes [rows, cols], where row r starts `stride` elements after row r - 1.
dnnl::memory::desc RowMajor(DataType type, int64_t rows, int64_t cols, int64_t stride);

// Describes [rows, cols] in the layout that oneDNN prefers.
dnnl::memory::desc AnyLayout(DataType type, int64_t rows, int64_t cols);

// The operands of y[rows, out] = x[rows, in] weights[in, out] + bias[1, out]; the bias is float32.
struct MatmulOperands {
  dnnl::memory::desc x;
  dnnl::memory::desc weights;
  dnnl::memory::desc y;
  int64_t out;
  bool has_bias;
  bool add_to_y;  // compute y += … instead
};

// Describes the product; the caller of each execution provides its scratchpad. Throws dnnl::error.
dnnl::matmul::primitive_desc DescribeMatmul(const MatmulOperands& operands);

// While such an object lives, primitives that its thread creates or runs use only that thread.
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
