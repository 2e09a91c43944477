// Element-wise activation functions.
#pragma once

#include <cstdint>

#include "engine/base/matrix_view.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// Computes y = activation(x) in float32; y may be x. Compared with float64, the absolute error is
// at most 5e-7 for |x| <= 20, or one unit in the last place of the result if that is more.
// Propagates NaN. The bits of an element do not depend on its position in the block.
void Activate(Activation activation, MatrixView<const float> x, MatrixView<float> y);
inline void Activate(Activation activation, MatrixView<float> block) {
  Activate(activation, block, block);
}

// The parameters that convert the sums of an int8 product to float32. Does not own the arrays.
struct Dequantization {
  const float* row_scales;     // one per row of the block
  const float* column_scales;  // one per column
  const float* bias;           // one per column
  bool integers;               // whether the elements of `sums` are int32 instead of float32
};

// Computes y = activation(sum * row scale * column scale + bias) in one pass; y may be `sums`.
void DequantizeAndActivate(const Dequantization& dequantization, Activation activation,
                           MatrixView<const float> sums, MatrixView<float> y);

// Rows of bfloat16, as bits. Row r starts at data + r * stride. Does not own the elements.
struct Bf16Rows {
  uint16_t* data;
  int64_t stride;
};

// Like Activate and DequantizeAndActivate, but round the results to bfloat16, to nearest even,
// without writing float32. Results that would be denormal may become zero. These call
// RequireBf16Units (isa.h), so they require a CPU with bf16 units.
void ActivateToBf16(Activation activation, MatrixView<const float> x, const Bf16Rows& y);
void DequantizeAndActivateToBf16(const Dequantization& dequantization, Activation activation,
                                 MatrixView<const float> sums, const Bf16Rows& y);

}  // namespace attendant
