// From rows of float32 to what a product of another compute type reads.
#pragma once

#include <cstdint>

#include "engine/base/compute_type.h"

namespace attendant {

// Whether an element's bits depend on nothing but that element: those of int8 have a scale for a
// whole row.
bool RoundsElementwise(const ComputeMode& mode);

// Where a row goes: each part of it is dense.
struct OperandTarget {
  void* data;
  int64_t part_stride = 0;  // bytes from one part to the next
};

// Rounds or quantises `count` float32 to `target`, and returns their scale: the value of an element
// is what `target` holds times the scale. A value's bits depend on nothing but the row. `scratch`:
// `count` floats, of kInt8 alone. `mode` is not kF32.
//   kBf16x3  two parts: x rounded as by kBf16, then what is left of it, rounded too; their sum is
//            within 2^-16 |x|. The first part stops at the largest bfloat16 with the sign of x, so
//            that products of any x, infinity too, overflow no sooner than those of float32.
//   kBf16    rounded to nearest even; the scale is 1
//   kInt8    the row is rotated first, so that one large element does not make the steps coarse
//            for all others: x' = H x for each whole block of 128 elements, H the Hadamard matrix
//            of +1 and -1; 8 x for those behind the last block. Then scale = max |x'| / 127,
//            elements x' / scale rounded to nearest even. All zeros for a row that is zero (below
//            2^-100), or not finite: its scale is then NaN.
float InputToOperand(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                     const OperandTarget& target);

// The same for a row of a weight [out, in], with H / 128 and 1 / 8: then the product of two
// operands is that of what they were made from, for H H = 128 I.
float WeightToOperand(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                      const OperandTarget& target);

}  // namespace attendant
