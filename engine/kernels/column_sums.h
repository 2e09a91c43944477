// Column sums of a matrix, for pooling.
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

}  // namespace attendant
