// Element-wise activations.
#pragma once

#include <cstdint>

#include "engine/base/matrix_view.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// y = activation(x), float32; y may be x itself. Against float64 the absolute error is at most 5e-7
// for |x| <= 20, or one unit in the result's last place where that is more. NaN stays NaN. An
// element's bits do not depend on its place in the block.
void Activate(Activation activation, MatrixView<const float> x, MatrixView<float> y);
inline void Activate(Activation activation, MatrixView<float> block) {
  Activate(activation, block, block);
}

// What makes float32 of the sums of an int8 product.
struct Dequantization {
  const float* row_scales;     // one for each row of the block
  const float* column_scales;  // one for each column
  const float* bias;           // one for each column
  bool integers;               // the sums are int32 in the memory of `sums`; else float32
};

// y = activation(sum * row scale * column scale + bias), in one pass; y may be `sums` itself.
void DequantizeAndActivate(const Dequantization& dequantization, Activation activation,
                           MatrixView<const float> sums, MatrixView<float> y);

}  // namespace attendant
