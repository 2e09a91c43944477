// Column sums and maxima of a matrix, for pooling and for sparse vectors over a vocabulary.
#pragma once

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Computes target[j] = (sum over r of x[r][j]) / divisor. Sums in float64 and in the order of the
// rows, and rounds once. `target` is [x.cols]. Does not allocate. A NaN or infinity stays in its
// column.
void ColumnSums(MatrixView<const float> x, double divisor, float* target);

// Likewise computes target[j] = (sum over r of weights[r] x[r][j]) / divisor. `weights` is
// [x.rows]; each must be an integer below 2^29, so that its product with a float32 is exact.
void WeightedColumnSums(MatrixView<const float> x, absl::Span<const double> weights, double divisor,
                        float* target);

// Sets target[j] to the maximum of itself and x[r][j] over all rows r. `target` is [x.cols]. A NaN
// in a column or in its target makes the target NaN. Does not allocate. The bits, except the sign
// of zero, do not depend on the order of the rows or on how they are split into calls.
void RaiseToColumnMax(MatrixView<const float> x, float* target);

}  // namespace attendant
