// From rows of float32 to what a product of another compute type reads.
#pragma once

#include <cstdint>

#include "engine/base/compute_type.h"

namespace attendant {

// Bytes of one element: 2 of bfloat16, 1 of int8; 4 if emulated, or kF32.
int64_t OperandWidth(const ComputeMode& mode);

// Rounds or quantises `count` float32 to `target`, and returns their scale: the value of an element
// is what `target` holds times the scale. A value's bits depend on nothing but the row. `scratch`:
// `count` floats. `mode` is not kF32.
//   kBf16  rounded to nearest even; the scale is 1
//   kInt8  the row is rotated first, so that one large element does not make the steps coarse for
//          all others: x' = H x for each whole block of 128 elements, H the Hadamard matrix of +1
//          and -1; 8 x for those behind the last block. Then scale = max |x'| / 127, elements
//          x' / scale rounded to nearest even. All zeros for a row that is zero (below 2^-100), or
//          not finite: its scale is then NaN.
float InputToOperand(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                     void* target);

// The same for a row of a weight [out, in], with H / 128 and 1 / 8: then the product of two
// operands is that of what they were made from, for H H = 128 I.
float WeightToOperand(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                      void* target);

}  // namespace attendant
