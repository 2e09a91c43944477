// Tables of relative positions: the biases that are added to scores, and the row of each distance.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"

namespace attendant {

// Returns the number of columns of a table for positions in [0, length).
constexpr int64_t DistanceColumns(int64_t length) { return 2 * length - 1; }

// Returns the bucket of `distance`, the key position minus the query position, by the rule of T5
// (Raffel et al. 2020, section 2.1): half of the buckets are for each direction; of these, small
// distances have one bucket each, and the others are logarithmically wider, up to max_distance.
// Requires that `buckets` is a multiple of 4 and max_distance > buckets / 4.
int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance);

// Fills `bias` [H, DistanceColumns(length)]: column length - 1 + distance is the bias that was
// learned for the distance's bucket. `learned` is [buckets, H].
void FillBucketBias(MatrixView<const float> learned, int64_t max_distance, MatrixView<float> bias);

// Fills `bias` [H, DistanceColumns(length)] with minus the slope of the head times the absolute
// distance: Press et al. 2022, whose rule gives slopes for any number of heads.
void FillAlibi(MatrixView<float> bias);

// Returns a view of such a table for Attention.
AttentionBias AsAttentionBias(MatrixView<const float> bias);

// Fills RelativeScores::row_of. If `buckets` is 0, each distance up to max_distance has its own
// row. Otherwise each direction has that many rows: the first half of them for one distance each,
// the others for logarithmically more distances, up to max_distance. Then requires buckets >= 2 and
// max_distance > buckets / 2 + 1.
void FillDistanceRows(int64_t buckets, int64_t max_distance, absl::Span<int32_t> row_of);

}  // namespace attendant
