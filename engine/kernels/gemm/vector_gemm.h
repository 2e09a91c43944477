// The vector GEMM: SIMD matrix products on one thread, for every CPU that the engine supports. It
// multiplies float32 by float32, bfloat16 or float16 weights, which it widens as it reads them, and
// int8 by int8.
//
// Every element of y is summed over the depth in the same order, whatever its position and the
// number of rows, so a row has the same bits in any batch. For each stretch of `sum_block` elements
// of the depth, it sums by fused multiply-adds in order, starting at zero; then it adds the sums of
// the stretches in order, and then the bias. oneDNN's float32 products are sums of this form, so
// for some `sum_block` the vector GEMM gives the same bits (kernel_check.h). Int8 sums are exact.
#pragma once

#include <cstdint>

namespace attendant {

enum class VectorElement : uint8_t { kFloat32, kBFloat16, kFloat16, kInt8 };  // of a weight

// Large enough for full speed, and small enough for sums as accurate as oneDNN's.
inline constexpr int64_t kVectorSumBlock = 384;

// Returns the bytes of a packed weight [width, in].
int64_t VectorWeightBytes(VectorElement element, int64_t in, int64_t width);

// A weight [width, in] of int8 for kInt8, otherwise of float32, which packing rounds to nearest
// even.
struct VectorWeightRows {
  const char* data;
  int64_t row_bytes;  // from the start of one row to the next
  int64_t in;
  int64_t width;
};

// Packs a weight into `packed`, which has VectorWeightBytes bytes, aligned to 64.
void PackVectorWeight(VectorElement element, const VectorWeightRows& rows, char* packed);

// y[rows, width] = x[rows, in] W + bias. x is float32, or int8 for kInt8. Elements of int8 x and
// weights are in [-127, 127].
struct VectorGemm {
  VectorElement element;
  int64_t in;
  int64_t width;
  int64_t rows;
  const char* x;
  int64_t x_row_bytes;  // from the start of one row of x to the next
  const char* weight;   // packed by PackVectorWeight
  const float* bias;    // [width], or null; must be null for kInt8
  bool add_to_y;        // whether to add to y instead of overwriting it; must be false for kInt8
  int64_t sum_block;    // ignored for kInt8
  float* y;             // int32 for kInt8
  int64_t y_stride;     // elements
};

void RunVectorGemm(const VectorGemm& product);

}  // namespace attendant
