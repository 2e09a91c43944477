#include "engine/kernels/attention/relative_positions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace attendant {

// Computed in float32, as in training.
int64_t DistanceBucket(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t half = buckets / 2;
  const int64_t exact = half / 2;
  const int64_t first = distance > 0 ? half : 0;
  const int64_t far = std::abs(distance);
  if (far < exact) return first + far;
  const auto ratio =
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const float share = std::log(static_cast<float>(far) / static_cast<float>(exact)) / ratio;
  const auto beyond = static_cast<int64_t>(share * static_cast<float>(half - exact));
  return first + std::min(exact + beyond, half - 1);
}

void FillBucketBias(MatrixView<const float> learned, int64_t max_distance, MatrixView<float> bias) {
  const int64_t middle = bias.cols / 2;
  for (int64_t column = 0; column < bias.cols; ++column) {
    const float* of_heads =
        learned.row(DistanceBucket(column - middle, learned.rows, max_distance));
    for (int64_t h = 0; h < bias.rows; ++h) bias.row(h)[column] = of_heads[h];
  }
}

namespace {

// A geometric sequence from 2^(-8 / n) for the largest power of two n within `heads`; the heads
// beyond take every other element of the sequence for 2 n.
double AlibiSlope(int64_t head, int64_t heads) {
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  if (head < power)
    return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(power));
  const int64_t odd = 2 * (head - power) + 1;
  return std::exp2(-4.0 * static_cast<double>(odd) / static_cast<double>(power));
}

// Computed in float32, as in training.
int64_t LogBucket(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t middle = buckets / 2, far = std::abs(distance);
  if (far <= middle) return distance;
  const auto of_middle = [&](int64_t n) {
    return std::log(static_cast<float>(static_cast<double>(n) / static_cast<double>(middle)));
  };
  const float share = of_middle(far) / of_middle(max_distance - 1);
  const auto beyond = static_cast<int64_t>(std::ceil(share * static_cast<float>(middle - 1)));
  return distance < 0 ? -(beyond + middle) : beyond + middle;
}

}  // namespace

void FillAlibi(MatrixView<float> bias) {
  const int64_t middle = bias.cols / 2;
  for (int64_t h = 0; h < bias.rows; ++h) {
    const double slope = AlibiSlope(h, bias.rows);
    for (int64_t column = 0; column < bias.cols; ++column) {
      bias.row(h)[column] =
          static_cast<float>(-slope * static_cast<double>(std::abs(column - middle)));
    }
  }
}

AttentionBias AsAttentionBias(MatrixView<const float> bias) {
  return {.data = bias.data + bias.cols / 2,
          .head_stride = bias.stride,
          .query_stride = -1,
          .key_stride = 1};
}

void FillDistanceRows(int64_t buckets, int64_t max_distance, absl::Span<int32_t> row_of) {
  const int64_t middle = static_cast<int64_t>(row_of.size()) / 2;
  const int64_t span = buckets > 0 ? buckets : max_distance;
  for (int64_t i = 0; i < static_cast<int64_t>(row_of.size()); ++i) {
    const int64_t distance = i - middle;
    const int64_t bucket = buckets > 0 ? LogBucket(distance, buckets, max_distance) : distance;
    row_of[i] = static_cast<int32_t>(std::clamp<int64_t>(span + bucket, 0, 2 * span - 1));
  }
}

}  // namespace attendant
