#include "client/load_test/arrival_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attendant::client {
namespace arrival_schedule_test {

TEST(ArrivalScheduleTest, ConstantDistancesDoNotDrift) {
  ArrivalSchedule schedule(Arrival::kConstant, 3, 1);
  EXPECT_EQ(schedule.Next(), absl::ZeroDuration());
  for (int i = 1; i < 300000; ++i) schedule.Next();
  EXPECT_EQ(schedule.Next(), absl::Seconds(100000));
}

TEST(ArrivalScheduleTest, PoissonHasExponentialDistances) {
  constexpr double kRate = 50;
  constexpr int kCount = 100000;
  ArrivalSchedule schedule(Arrival::kPoisson, kRate, 11);
  EXPECT_EQ(schedule.Next(), absl::ZeroDuration());
  double last = 0;
  double sum = 0;
  double sum_of_squares = 0;
  int longer_than_mean = 0;
  for (int i = 0; i < kCount; ++i) {
    const double due = absl::ToDoubleSeconds(schedule.Next());
    const double gap = due - last;
    ASSERT_GE(gap, 0);
    last = due;
    sum += gap;
    sum_of_squares += gap * gap;
    longer_than_mean += gap > 1 / kRate ? 1 : 0;
  }
  const double mean = sum / kCount;
  const double deviation = std::sqrt(sum_of_squares / kCount - mean * mean);
  EXPECT_NEAR(mean * kRate, 1, 0.015);  // four standard errors
  EXPECT_NEAR(deviation * kRate, 1, 0.03);
  EXPECT_NEAR(static_cast<double>(longer_than_mean) / kCount, std::exp(-1), 0.01);
}

TEST(ArrivalScheduleTest, SameSeedSameTimes) {
  ArrivalSchedule a(Arrival::kPoisson, 5, 3);
  ArrivalSchedule b(Arrival::kPoisson, 5, 3);
  ArrivalSchedule c(Arrival::kPoisson, 5, 4);
  a.Next();
  b.Next();
  c.Next();
  const absl::Duration due = a.Next();
  EXPECT_EQ(due, b.Next());
  EXPECT_NE(due, c.Next());
}

TEST(ArrivalScheduleTest, AReplayKeepsItsTimesAndEnds) {
  ArrivalSchedule schedule(
      std::make_shared<const std::vector<double>>(std::vector<double>{0, 0, 1, 5}), 2);
  EXPECT_EQ(schedule.Next(), absl::ZeroDuration());
  EXPECT_EQ(schedule.Next(), absl::ZeroDuration());
  EXPECT_EQ(schedule.Next(), absl::Seconds(0.5));
  EXPECT_EQ(schedule.Next(), absl::Seconds(2.5));
  EXPECT_EQ(schedule.Next(), absl::InfiniteDuration());
  EXPECT_EQ(schedule.Next(), absl::InfiniteDuration());
}

}  // namespace arrival_schedule_test
}  // namespace attendant::client
