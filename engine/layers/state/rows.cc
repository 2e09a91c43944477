#include "engine/layers/state/rows.h"

#include <algorithm>

namespace attendant {

void AddRow(const float* row, int64_t width, float* sum) {
  for (int64_t j = 0; j < width; ++j) sum[j] += row[j];
}

void AddScaledRow(const float* row, float factor, int64_t width, float* sum) {
  for (int64_t j = 0; j < width; ++j) sum[j] += factor * row[j];
}

MatrixView<float> CompactRows(absl::Span<const int32_t> rows, MatrixView<float> buffer) {
  const int64_t count = static_cast<int64_t>(rows.size());
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] != i) std::copy_n(buffer.row(rows[i]), buffer.cols, buffer.row(i));
  }
  return buffer.Rows(0, count);
}

void ExpandRows(absl::Span<const int32_t> rows, MatrixView<float> buffer) {
  for (int64_t i = static_cast<int64_t>(rows.size()); i-- > 0;) {
    if (rows[i] != i) std::copy_n(buffer.row(i), buffer.cols, buffer.row(rows[i]));
  }
}

}  // namespace attendant
