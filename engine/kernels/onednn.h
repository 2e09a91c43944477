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

// Describes a dense matrix [rows, cols].
dnnl::memory::desc RowMajor(DataType type, int64_t rows, int64_t cols);

// Describes a matrix [rows, cols] in a layout that oneDNN chooses.
dnnl::memory::desc AnyLayout(DataType type, int64_t rows, int64_t cols);

// Describes y[rows, out] = x[rows, in] weights[in, out] + bias[1, out], which is executed with a
// scratchpad of the caller. An empty `bias` means that there is none. If `add_to_y`, the product is
// added to y instead of overwriting it. Throws dnnl::error.
dnnl::matmul::primitive_desc DescribeMatmul(const dnnl::memory::desc& x,
                                            const dnnl::memory::desc& weights,
                                            const dnnl::memory::desc& bias,
                                            const dnnl::memory::desc& y, bool add_to_y);

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
