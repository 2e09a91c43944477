// RelativeScores: the scores of disentangled attention, between the content of tokens and their
// distances.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// Disentangled attention: He et al. 2021, section 3.1. Every distance has a row of `keys`, which
// queries are scored against, and one of `queries`, which keys are scored against; both are added
// to the scores before the scale. Does not own.
struct RelativeScores {
  explicit operator bool() const { return keys.data != nullptr || queries.data != nullptr; }
  int64_t rows() const { return keys.data != nullptr ? keys.rows : queries.rows; }

  MatrixView<const float> keys;     // [rows, H Dk], or data null: none
  MatrixView<const float> queries;  // [rows, H Dk], or data null: none
  const int32_t* row_of = nullptr;  // [2 middle + 1]: at middle + query position - key position;
                                    // ascends
  int64_t middle = 0;
};

// The row of each distance for row_of, with `buckets` for either direction: the nearer half of them
// for one distance each, the others logarithmically wider up to max_distance; 0: one for each
// distance up to max_distance. 2 <= buckets, buckets / 2 + 1 < max_distance.
void FillDistanceRows(int64_t buckets, int64_t max_distance, absl::Span<int32_t> row_of);

}  // namespace attendant
