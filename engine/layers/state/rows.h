// Operations on the rows of a run's buffers.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Reinterprets the start of a buffer as a dense matrix, which may be narrower than the buffer.
inline MatrixView<float> Narrow(MatrixView<float> buffer, int64_t rows, int64_t cols) {
  return {buffer.data, rows, cols, cols};
}

// sum += row, element by element.
void AddRow(const float* row, int64_t width, float* sum);

// sum += factor * row, element by element.
void AddScaledRow(const float* row, float factor, int64_t width, float* sum);

// Moves `rows`, which must be ascending, to the front of the buffer. Returns these rows.
MatrixView<float> CompactRows(absl::Span<const int32_t> rows, MatrixView<float> buffer);

// Undoes CompactRows: moves the first rows of the buffer back to `rows`. Other rows are undefined.
void ExpandRows(absl::Span<const int32_t> rows, MatrixView<float> buffer);

}  // namespace attendant
