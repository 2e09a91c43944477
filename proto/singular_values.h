// Singular values, by LAPACK in float64: the server measures projections of a model with them, the
// client maps of attention.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace attendant::proto {

// Return the singular values in descending order, min(rows, cols) of them, of the row-major matrix
// [rows, cols]; none if an element is not finite. Rows and columns must be below 2^15. Thread-safe.
std::vector<double> SingularValues(std::vector<double> matrix, int64_t rows, int64_t cols);

// Likewise, those of the product A^T B of the row-major matrices A and B with `rows` rows each. The
// values beyond `rows` are left out, as they are 0. Never forms the product itself.
std::vector<double> SingularValuesOfProduct(absl::Span<const float> a, absl::Span<const float> b,
                                            int64_t rows);

}  // namespace attendant::proto
