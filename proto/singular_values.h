// Singular values, computed by LAPACK in float64. The server uses them for a model's projections,
// the client for attention maps.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace attendant::proto {

// Returns the min(rows, cols) singular values of the row-major matrix [rows, cols] in descending
// order; empty if an element is not finite. Rows and columns must be below 2^15. Thread-safe.
std::vector<double> SingularValues(std::vector<double> matrix, int64_t rows, int64_t cols);

// Likewise for the product A^T B of the row-major matrices A and B with `rows` rows each, without
// computing the product. Omits the values beyond `rows`, which are 0.
std::vector<double> SingularValuesOfProduct(absl::Span<const float> a, absl::Span<const float> b,
                                            int64_t rows);

}  // namespace attendant::proto
