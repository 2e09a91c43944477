// Element-wise activation functions.
#pragma once

#include <cstdint>

#include "engine/base/matrix_view.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// Computes y = activation(x) in float32; y may be x itself. Compared with float64 the absolute
// error is at most 5e-7 for |x| <= 20, or one unit in the last place of the result if that is more.
// NaN stays NaN. The bits of an element do not depend on its place in the block.
void Activate(Activation activation, MatrixView<const float> x, MatrixView<float> y);
inline void Activate(Activation activation, MatrixView<float> block) {
  Activate(activation, block, block);
}

// The parameters that convert the sums of an int8 product to float32. The pointers are borrowed.
struct Dequantization {
  const float* row_scales;     // one per row of the block
  const float* column_scales;  // one per column
  const float* bias;           // one per column
  bool integers;               // `sums` holds int32 in its memory; else float32
};

// Computes y = activation(sum * row scale * column scale + bias) in one pass; y may be `sums`
// itself.
void DequantizeAndActivate(const Dequantization& dequantization, Activation activation,
                           MatrixView<const float> sums, MatrixView<float> y);

// Rows of bfloat16, as bits: row r begins `stride` elements after row r - 1. Owns nothing.
struct Bf16Rows {
  uint16_t* data;
  int64_t stride;
};

// Compute the same, rounded to nearest even as it is made, so that no float32 is written. Results
// that bfloat16 would hold as denormal numbers become zeros. Only for CPUs with bf16 units: they
// call RequireBf16Units (isa.h).
void ActivateToBf16(Activation activation, MatrixView<const float> x, const Bf16Rows& y);
void DequantizeAndActivateToBf16(const Dequantization& dequantization, Activation activation,
                                 MatrixView<const float> sums, const Bf16Rows& y);

}  // namespace attendant
