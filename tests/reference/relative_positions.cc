#include "tests/reference/relative_positions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace attendant::reference {

int64_t Bucket(int64_t relative, int64_t buckets, int64_t max_distance) {
  int64_t bucket = 0;
  buckets /= 2;
  if (relative > 0) bucket += buckets;
  relative = std::abs(relative);
  const int64_t exact = buckets / 2;
  if (relative < exact) return bucket + relative;
  const double place = std::log(static_cast<double>(relative) / exact) /
                       std::log(static_cast<double>(max_distance) / exact) * (buckets - exact);
  return bucket + std::min(exact + static_cast<int64_t>(place + 1e-9), buckets - 1);
}

int64_t DistanceRow(int64_t distance, int64_t buckets, int64_t max_distance) {
  const int64_t span = buckets > 0 ? buckets : max_distance;
  const int64_t middle = buckets / 2, far = std::abs(distance);
  if (buckets > 0 && far > middle) {
    const double place = std::log(static_cast<double>(far) / middle) /
                         std::log(static_cast<double>(max_distance - 1) / middle) * (middle - 1);
    const int64_t bucket = static_cast<int64_t>(std::ceil(place - 1e-9)) + middle;
    distance = distance < 0 ? -bucket : bucket;
  }
  return std::clamp<int64_t>(span + distance, 0, 2 * span - 1);
}

std::vector<double> AlibiSlopes(int64_t heads) {
  const double log2 = std::log2(static_cast<double>(heads));
  const double whole = std::exp2(std::floor(log2));
  if (static_cast<double>(heads) == whole) {
    const double start = std::exp2(-std::exp2(-(log2 - 3)));
    std::vector<double> slopes;
    for (int64_t i = 0; i < heads; ++i) slopes.push_back(start * std::pow(start, i));
    return slopes;
  }
  std::vector<double> slopes = AlibiSlopes(static_cast<int64_t>(whole));
  const std::vector<double> finer = AlibiSlopes(static_cast<int64_t>(2 * whole));
  for (size_t i = 0; static_cast<int64_t>(slopes.size()) < heads; i += 2)
    slopes.push_back(finer[i]);
  return slopes;
}

}  // namespace attendant::reference
