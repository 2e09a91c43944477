#include "client/load_test/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace attendant::client {
namespace histogram_test {

TEST(HistogramTest, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.mean(), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
  EXPECT_EQ(histogram.Percentile(99), absl::ZeroDuration());
  EXPECT_EQ(histogram.CountAbove(absl::ZeroDuration()), 0);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (int i = 1; i <= 200; ++i) histogram.Record(absl::Nanoseconds(i));
  EXPECT_EQ(histogram.Percentile(0), absl::Nanoseconds(1));
  EXPECT_EQ(histogram.Percentile(50), absl::Nanoseconds(100));
  EXPECT_EQ(histogram.Percentile(99), absl::Nanoseconds(198));
  EXPECT_EQ(histogram.Percentile(100), absl::Nanoseconds(200));
  EXPECT_EQ(histogram.mean(), absl::Nanoseconds(100.5));
  EXPECT_EQ(histogram.CountAbove(absl::Nanoseconds(150)), 50);
}

// Compares every percentile with the sorted values, over twelve orders of magnitude.
TEST(HistogramTest, ErrorIsBelowOnePercentAndNeverBelowTheValue) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0, 12);
  std::vector<double> values;
  Histogram histogram;
  for (int i = 0; i < 20000; ++i) {
    const double value = std::floor(std::pow(10, exponent(random)));
    values.push_back(value);
    histogram.Record(absl::Nanoseconds(value));
  }
  std::sort(values.begin(), values.end());
  for (double percent = 0.05; percent <= 100; percent += 0.05) {
    const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
    const double exact = values[static_cast<size_t>(rank) - 1];
    const double found = absl::ToDoubleNanoseconds(histogram.Percentile(percent));
    ASSERT_GE(found, exact) << percent;
    ASSERT_LE(found, exact * 1.01) << percent;
  }
}

TEST(HistogramTest, TakesTheExtremes) {
  Histogram histogram;
  histogram.Record(-absl::Seconds(1));
  histogram.Record(absl::InfiniteDuration());
  EXPECT_EQ(histogram.Percentile(50), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::Nanoseconds(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(histogram.Percentile(100), histogram.max());
}

TEST(HistogramTest, PowersOfTwoLandInTheirOwnBuckets) {
  for (int shift = 0; shift < 63; ++shift) {
    const int64_t value = int64_t{1} << shift;
    Histogram histogram;
    histogram.Record(absl::Nanoseconds(value));
    histogram.Record(absl::Nanoseconds(value - 1));
    EXPECT_EQ(histogram.Percentile(50), absl::Nanoseconds(value - 1));
    EXPECT_EQ(histogram.Percentile(100), absl::Nanoseconds(value));
  }
}

TEST(HistogramTest, MergingIsRecordingBoth) {
  Histogram a;
  Histogram b;
  Histogram both;
  for (int i = 1; i < 1000; ++i) {
    const absl::Duration duration = absl::Microseconds(i * i);
    (i % 3 == 0 ? a : b).Record(duration);
    both.Record(duration);
  }
  a.Merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.max(), both.max());
  EXPECT_EQ(a.mean(), both.mean());
  for (double percent : {1.0, 50.0, 90.0, 99.9}) {
    EXPECT_EQ(a.Percentile(percent), both.Percentile(percent));
  }
}

TEST(HistogramTest, BucketsAreThoseThatAreNotEmpty) {
  Histogram histogram;
  EXPECT_TRUE(histogram.Buckets().empty());
  for (const int nanoseconds : {5, 5, 1000, 1001}) {
    histogram.Record(absl::Nanoseconds(nanoseconds));
  }
  const std::vector<Histogram::Bucket> buckets = histogram.Buckets();
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].upper, absl::Nanoseconds(5));
  EXPECT_EQ(buckets[0].count, 2);
  EXPECT_EQ(buckets[1].upper, absl::Nanoseconds(1001));  // the maximum, not the bucket's end
  EXPECT_EQ(buckets[1].count, 2);
}

}  // namespace histogram_test
}  // namespace attendant::client
