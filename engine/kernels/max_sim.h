// The score of late-interaction models: Khattab and Zaharia 2020 (ColBERT).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Returns the sum, over the rows of `query` [Q, P], of the largest dot product with any of the rows
// `rows` of `document` [., P]. Returns 0 if there are no rows. Dot products are float32 and the sum
// is float64. A NaN in a row makes the score NaN. Does not allocate. The bits do not depend on the
// order of `rows`.
float MaxSim(MatrixView<const float> query, MatrixView<const float> document,
             absl::Span<const int32_t> rows);

}  // namespace attendant
