// Conversion of float32 rows to the number format of a compute type.
#pragma once

#include <cstdint>

#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"

namespace attendant {

inline constexpr int8_t kLargestInt8 = 127;

// Whether the bits of an element depend only on that element. False for int8, which has one scale
// for a whole row.
bool RoundsElementwise(const ComputeMode& mode);

// Whether the CPU has instructions that round to the format of this mode, which is then bfloat16.
bool RoundsNatively(const ComputeMode& mode);

// The memory that rows are written to. Each part of a row is dense.
struct ConversionTarget {
  void* data;
  int64_t part_stride = 0;  // bytes from one part of a row to its next part
  int64_t row_stride = 0;   // bytes from a part of one row to the same part of the next row
};

// Rounds or quantises `count` floats to `target` and returns their scale: the value of an element
// is its number in `target` times the scale. The bits depend only on the row. `scratch` has `count`
// floats and is used only for kInt8. `mode` must not be kF32.
//   kBf16x3  Two parts: x rounded as for kBf16, then the remainder, also rounded. Their sum is
//            within 2^-16 |x| of x. The magnitude of the first part is at most the largest
//            bfloat16, so that products of any x, even infinity, overflow no sooner than in
//            float32.
//   kBf16    Rounded to nearest even. The scale is 1.
//   kInt8    The row is rotated first, so that one large element does not reduce the precision of
//            all others: x' = H x for each whole block of 128 elements, where H is the Hadamard
//            matrix of +1 and -1, and x' = 8 x for the elements after the last block. The scale is
//            max |x'| / 127, and the elements are x' / scale, rounded to nearest even. If the row
//            is zero (below 2^-100) or not finite, all elements are zero; in the latter case the
//            scale is NaN.
float ConvertInput(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                   const ConversionTarget& target);

// Likewise converts several rows. For kInt8, writes their scales to `scales`.
void ConvertInputRows(const ComputeMode& mode, MatrixView<const float> rows, float* scratch,
                      const ConversionTarget& target, float* scales);

// Likewise converts a row of a weight [out, in], but with H / 128 instead of H and 1 / 8 instead of
// 8. Because H H = 128 I, the product of the two converted rows is the product of the original
// rows.
float ConvertWeight(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                    const ConversionTarget& target);

}  // namespace attendant
