// Element-wise activation functions.
#pragma once

#include <cstdint>

#include "engine/base/matrix_view.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// The parameters that convert the sums of an int8 product to float32, as in
// `sum * row scale * column scale + bias`. Does not own the arrays.
struct Dequantization {
  const float* row_scales = nullptr;     // one per row of the block; null if nothing is converted
  const float* column_scales = nullptr;  // one per column
  const float* bias = nullptr;           // one per column
  bool integers = false;                 // whether the sums are int32 instead of float32
};

// Computes y = activation(x) in float32, in one pass with the conversion of x; y may be x. Compared
// with float64, the absolute error of the activation is at most 5e-7 for |x| <= 20, or one unit in
// the last place of the result if that is more. Propagates NaN. The bits of an element do not
// depend on its position in the block.
void Activate(Activation activation, MatrixView<const float> x, MatrixView<float> y,
              const Dequantization& from = {});
inline void Activate(Activation activation, MatrixView<float> block) {
  Activate(activation, block, block);
}

// Rows of bfloat16, as bits. Row r starts at data + r * stride. Does not own the elements.
struct Bf16Rows {
  uint16_t* data;
  int64_t stride;
};

// Like Activate, but rounds the results to bfloat16, to nearest even, without writing float32.
// Results that would be denormal may become zero. Calls RequireBf16Units (isa.h), so it requires a
// CPU with bf16 units.
void ActivateToBf16(Activation activation, MatrixView<const float> x, const Bf16Rows& y,
                    const Dequantization& from = {});

}  // namespace attendant
