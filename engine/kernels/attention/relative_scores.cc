#include "engine/kernels/attention/relative_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace attendant {
namespace {

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
