// Rows of a run's buffers: zeroed, added, and moved to the front and back when only some are
// wanted.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Fills all elements of the rows with zeros.
void ZeroRows(MatrixView<float> rows);

// The start of a buffer as a dense matrix, which may be narrower than the buffer.
inline MatrixView<float> Narrow(MatrixView<float> buffer, int64_t rows, int64_t cols) {
  return {buffer.data, rows, cols, cols};
}

// sum += row, element by element.
void AddRow(const float* row, int64_t width, float* sum);

// sum += factor * row, element by element.
void AddScaledRow(const float* row, float factor, int64_t width, float* sum);

// Moves `rows`, which ascend, to the first rows of the buffer and returns those, PaddedRows(count)
// of them, after zeroing the tail that a matrix product reads too.
MatrixView<float> CompactRows(absl::Span<const int32_t> rows, MatrixView<float> buffer);

// Moves the first rows of the buffer back to `rows`, where CompactRows took them from.
void ExpandRows(absl::Span<const int32_t> rows, MatrixView<float> buffer);

}  // namespace attendant
