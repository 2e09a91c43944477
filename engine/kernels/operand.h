// From rows of float32 to what a product of another compute type reads.
#pragma once

#include <cstdint>

#include "engine/base/compute_type.h"

namespace attendant {

// Bytes of one element: 2 of bfloat16, 1 of int8; 4 if emulated, or kF32.
int64_t OperandWidth(const ComputeMode& mode);

// Rounds or quantises `count` float32 to `target`, and returns their scale: the value of an element
// is what `target` holds times the scale. A value's bits depend on nothing but the row.
//   kBf16  rounded to nearest even; the scale is 1
//   kInt8  scale = max |x| / 127, elements x / scale rounded to nearest even. All zeros for a row
//          that is zero (below 2^-100), or not finite: its scale is then NaN.
// `mode` is not kF32.
float ToOperand(const ComputeMode& mode, const float* source, int64_t count, void* target);

}  // namespace attendant
