// RelativeScores: the scores of disentangled attention between the content of tokens and relative
// positions.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Disentangled attention: He et al. 2021, section 3.1. Each distance has a row of `keys`, against
// which queries are scored, and a row of `queries`, against which keys are scored. Both are added
// to the scores before scaling. Does not own the arrays.
struct RelativeScores {
  explicit operator bool() const { return keys.data != nullptr || queries.data != nullptr; }
  int64_t rows() const { return keys.data != nullptr ? keys.rows : queries.rows; }

  MatrixView<const float> keys;     // [rows, H Dk], or null if queries are not scored
  MatrixView<const float> queries;  // [rows, H Dk], or null if keys are not scored
  // [2 middle + 1], ascending: row_of[middle + query position - key position] is the row of the
  // distance.
  const int32_t* row_of = nullptr;
  int64_t middle = 0;
};

// Fills `row_of`. If `buckets` is 0, each distance up to max_distance has its own row. Otherwise
// each direction has that many rows: the first half of them for one distance each, the others for
// logarithmically more distances, up to max_distance. Then requires buckets >= 2 and max_distance >
// buckets / 2 + 1.
void FillDistanceRows(int64_t buckets, int64_t max_distance, absl::Span<int32_t> row_of);

}  // namespace attendant
