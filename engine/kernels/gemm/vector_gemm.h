// The vector GEMM: matrix products in SIMD on one thread, for every CPU that the engine serves. It
// multiplies float32 by weights of float32, bfloat16 or float16, which it widens as it reads them,
// and int8 by int8.
//
// An element of y is summed over the depth in one order, whatever its place and however many rows
// there are, so a row has the same bits in any batch: for each stretch of `sum_block` elements of
// the depth, one fused multiply-add after the other, starting at zero; then the sums of the
// stretches, in their order; then the bias. oneDNN's products of float32 are sums of this form, so
// that there is a `sum_block` with which the vector GEMM gives their bits (kernel_check.h). Sums of
// int8 are exact.
#pragma once

#include <cstdint>

namespace attendant {

enum class VectorElement : uint8_t { kFloat32, kBFloat16, kFloat16, kInt8 };  // of a weight

// Long enough for full speed, and short enough for sums that are as accurate as oneDNN's.
inline constexpr int64_t kVectorSumBlock = 384;

// Bytes of a packed weight [width, in].
int64_t VectorWeightBytes(VectorElement element, int64_t in, int64_t width);

// A weight's rows of `in` elements each: int8 for kInt8, else float32, rounded to nearest even as
// they are packed.
struct VectorWeightRows {
  const char* data;
  int64_t row_bytes;  // from one to the next
  int64_t in;
  int64_t width;  // how many
};

// packed: VectorWeightBytes, aligned to 64.
void PackVectorWeight(VectorElement element, const VectorWeightRows& rows, char* packed);

// y[rows, width] = x[rows, in] W + bias. x is int8 for kInt8, with elements of -127 to 127 as the
// weight has, else float32.
struct VectorGemm {
  VectorElement element;
  int64_t in;
  int64_t width;
  int64_t rows;
  const char* x;
  int64_t x_row_bytes;  // from one row of x to the next
  const char* weight;   // of PackVectorWeight
  const float* bias;    // [width], or null; not for kInt8
  bool add_to_y;        // y += instead; not for kInt8
  int64_t sum_block;    // not for kInt8
  float* y;             // int32 for kInt8
  int64_t y_stride;     // elements
};

void RunVectorGemm(const VectorGemm& product);

}  // namespace attendant
