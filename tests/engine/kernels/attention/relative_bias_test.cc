#include <cmath>
#include <utility>
#include <vector>

#include "engine/kernels/attention/relative_positions.h"
#include "gtest/gtest.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace relative_bias_test {

TEST(DistanceBucketTest, IsThatOfTheModelsThatLearnedThem) {
  const std::vector<std::pair<int64_t, int64_t>> expected = {
      {0, 0},   {-1, 1},  {-7, 7},  {-8, 8},  {-16, 10}, {-128, 15}, {1, 17},  {7, 23},  {8, 24},
      {12, 25}, {16, 26}, {23, 27}, {32, 28}, {46, 29},  {64, 30},   {91, 31}, {600, 31}};
  for (const auto& [distance, bucket] : expected) {
    EXPECT_EQ(DistanceBucket(distance, 32, 128), bucket) << distance;
  }
}

TEST(DistanceBucketTest, IsInTheTableForAnyDistance) {
  for (const auto& [buckets, max_distance] :
       std::vector<std::pair<int64_t, int64_t>>{{4, 2}, {8, 10}, {32, 128}, {64, 1000}}) {
    int64_t last = 0;
    for (int64_t distance = 0; distance < 70'000; ++distance) {
      const int64_t bucket = DistanceBucket(-distance, buckets, max_distance);
      ASSERT_GE(bucket, last) << distance;
      ASSERT_LT(bucket, buckets / 2) << distance;
      ASSERT_LT(DistanceBucket(distance, buckets, max_distance), buckets) << distance;
      last = bucket;
    }
    EXPECT_EQ(last, buckets / 2 - 1);
  }
}

TEST(FillBucketBiasTest, PutsEachDistanceWhereTheAttentionLooks) {
  constexpr int64_t kHeads = 3, kBuckets = 8, kMaxDistance = 10, kLength = 23;
  const std::vector<float> learned = RandomValues(kBuckets * kHeads, 1);
  std::vector<float> table(kHeads * DistanceColumns(kLength));
  const MatrixView<float> view = ViewOf(table, kHeads, DistanceColumns(kLength));
  FillBucketBias(ViewOf(learned, kBuckets, kHeads), kMaxDistance, view);
  const AttentionBias bias = AsAttentionBias(view);
  for (int64_t h = 0; h < kHeads; ++h) {
    for (int64_t s = 0; s < kLength; ++s) {
      for (int64_t t = 0; t < kLength; ++t) {
        const int64_t bucket = DistanceBucket(t - s, kBuckets, kMaxDistance);
        ASSERT_EQ(bias.data[h * bias.head_stride + s * bias.query_stride + t * bias.key_stride],
                  learned[bucket * kHeads + h])
            << h << " " << s << " " << t;
      }
    }
  }
}

TEST(FillAlibiTest, HasTheSlopesOfThePaper) {
  const std::vector<std::pair<int64_t, std::vector<double>>> expected = {
      {1, {0.00390625}},
      {2, {.0625, .00390625}},
      {8, {.5, .25, .125, .0625, .03125, .015625, .0078125, .00390625}},
      {12,
       {.5, .25, .125, .0625, .03125, .015625, .0078125, .00390625, .70710678, .35355339, .1767767,
        .08838835}}};
  for (const auto& [heads, slopes] : expected) {
    std::vector<float> table(heads * DistanceColumns(5));
    const MatrixView<float> view = ViewOf(table, heads, DistanceColumns(5));
    FillAlibi(view);
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t column = 0; column < view.cols; ++column) {
        const double distance = std::abs(column - 4);
        EXPECT_NEAR(view.row(h)[column], -slopes[h] * distance, 1e-7 * (1 + distance)) << heads;
      }
    }
  }
}

}  // namespace relative_bias_test
}  // namespace attendant
