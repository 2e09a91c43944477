// Operations on the rows of a run's buffers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Reinterprets the start of a buffer as a dense matrix, which may be narrower than the buffer.
inline MatrixView<float> Narrow(MatrixView<float> buffer, int64_t rows, int64_t cols) {
  return {buffer.data, rows, cols, cols};
}

// sum += row, element by element.
inline void AddRow(const float* row, int64_t width, float* sum) {
  for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
}

// sum += factor * row, element by element.
inline void AddScaledRow(const float* row, float factor, int64_t width, float* sum) {
  for (int64_t j = 0; j < width; ++j) sum[j] += factor * row[j];
}

// Moves `rows`, which must be ascending, to the front of the buffer. Returns these rows.
inline MatrixView<float> CompactRows(absl::Span<const int32_t> rows, MatrixView<float> buffer) {
  const int64_t count = static_cast<int64_t>(rows.size());
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] != i) std::copy_n(buffer.row(rows[i]), buffer.cols, buffer.row(i));
  }
  return buffer.Rows(0, count);
}

// Undoes CompactRows: moves the first rows of the buffer back to `rows`. Other rows are undefined.
inline void ExpandRows(absl::Span<const int32_t> rows, MatrixView<float> buffer) {
  for (int64_t i = static_cast<int64_t>(rows.size()); i-- > 0;) {
    if (rows[i] != i) std::copy_n(buffer.row(i), buffer.cols, buffer.row(rows[i]));
  }
}

}  // namespace attendant
