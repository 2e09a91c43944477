// Tables of what the distance between query and key adds to the scores.
#pragma once

#include <cstdint>

#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"

namespace attendant {

// Columns of a table for positions 0 to length - 1.
constexpr int64_t DistanceColumns(int64_t length) { return 2 * length - 1; }

// The bucket of key position minus query position, by the rule of T5 (Raffel et al. 2020, section
// 2.1): half of the buckets for either direction; in each, one bucket for each small distance, then
// logarithmically wider ones up to max_distance. buckets divides by 4, max_distance > buckets / 4.
int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance);

// bias [H, DistanceColumns(length)]: column length - 1 + distance is the learned number of the
// distance's bucket. learned: [buckets, H].
void FillBucketBias(MatrixView<const float> learned, int64_t max_distance, MatrixView<float> bias);

// bias [H, DistanceColumns(length)]: minus the head's slope times the distance, either way: Press
// et al. 2022. The slopes are theirs, for any number of heads.
void FillAlibi(MatrixView<float> bias);

// The table as the attention adds it.
AttentionBias AsAttentionBias(MatrixView<const float> bias);

}  // namespace attendant
