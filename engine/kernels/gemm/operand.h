// The conversion of float32 rows to what a product of another compute type reads.
#pragma once

#include <cstdint>

#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Returns true if the bits of an element depend on that element alone. They do not for int8, which
// has one scale for a whole row.
bool RoundsElementwise(const ComputeMode& mode);

// Returns true if the CPU itself rounds to operands of this mode, which are bfloat16.
bool RoundsNatively(const ComputeMode& mode);

// The memory that rows are written to. Each part of a row is dense.
struct OperandTarget {
  void* data;
  int64_t part_stride = 0;  // bytes from one part of a row to its next
  int64_t row_stride = 0;   // bytes from a part of one row to that of the next row
};

// Rounds or quantises `count` float32 to `target` and returns their scale: the value of an element
// is what `target` holds times the scale. The bits of a value depend on its row alone. `scratch`
// has `count` floats and is only used for kInt8. `mode` must not be kF32.
//   kBf16x3  Two parts: x rounded as by kBf16, then the remainder, rounded too. Their sum is within
//            2^-16 |x| of x. The first part is at most the largest bfloat16, with the sign of x, so
//            that products of any x, even infinity, overflow no sooner than those of float32.
//   kBf16    Rounded to nearest even; the scale is 1.
//   kInt8    The row is rotated first, so that one large element does not make the steps coarse for
//            all others: x' = H x for each whole block of 128 elements, where H is the Hadamard
//            matrix of +1 and -1, and x' = 8 x for the elements after the last block. The scale is
//            max |x'| / 127, and the elements are x' / scale, rounded to nearest even. All elements
//            are zero for a row that is zero (below 2^-100), and for one that is not finite, whose
//            scale is NaN.
float InputToOperand(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                     const OperandTarget& target);

// Does so with several rows, whose scales go to `scales` for kInt8, and nowhere for the other
// types.
void InputRowsToOperand(const ComputeMode& mode, MatrixView<const float> rows, float* scratch,
                        const OperandTarget& target, float* scales);

// Converts a row of a weight [out, in] in this way, but with H / 128 in place of H and 1 / 8 in
// place of 8. As H H = 128 I, the product of the two operands is then the product of the original
// rows.
float WeightToOperand(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                      const OperandTarget& target);

}  // namespace attendant
