#include "client/load_test/timeline.h"

#include <gtest/gtest.h>

namespace attendant::client {
namespace timeline_test {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

RequestTimes Times(double sent, double answered) {
  return {.intended = kStart + absl::Seconds(sent),
          .sent = kStart + absl::Seconds(sent),
          .answered = kStart + absl::Seconds(answered)};
}

Execution SomeExecution() {
  Execution execution;
  execution.queue = absl::Milliseconds(1);
  execution.copy = absl::Milliseconds(2);
  execution.compute = absl::Milliseconds(3);
  execution.batch_requests = 4;
  return execution;
}

TEST(TimelineTest, CountsSendingAndAnsweringWhereTheyHappened) {
  Timeline timeline;
  timeline.Begin(kStart);
  timeline.Record(Times(0.1, 0.2), SomeExecution());
  timeline.Record(Times(0.2, 0.5), SomeExecution());
  timeline.Record(Times(0.9, 2.1), SomeExecution());
  timeline.Record(Times(1.9, 2.2), absl::UnavailableError(""));
  const std::vector<SecondOfLoad> seconds = timeline.Seconds();
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_EQ(seconds[0].sent, 3);
  EXPECT_EQ(seconds[0].ok, 2);
  EXPECT_EQ(seconds[0].queue, absl::Milliseconds(2));
  EXPECT_EQ(seconds[0].copy, absl::Milliseconds(4));
  EXPECT_EQ(seconds[0].compute, absl::Milliseconds(6));
  EXPECT_EQ(seconds[0].batch_requests, 8);
  EXPECT_NEAR(absl::ToDoubleSeconds(seconds[0].p50), 0.1, 0.001);
  EXPECT_NEAR(absl::ToDoubleSeconds(seconds[0].p99), 0.3, 0.003);
  EXPECT_EQ(seconds[1].sent, 1);
  EXPECT_EQ(seconds[1].ok, 0);
  EXPECT_EQ(seconds[1].p99, absl::ZeroDuration());
  EXPECT_EQ(seconds[2].ok, 1);
  EXPECT_EQ(seconds[2].errors.at(absl::StatusCode::kUnavailable), 1);
  EXPECT_NEAR(absl::ToDoubleSeconds(seconds[2].p99), 1.2, 0.01);
}

TEST(TimelineTest, AnAnswerThatIsRecordedLateCountsInTheSecondThatHasBegun) {
  Timeline timeline;
  timeline.Begin(kStart);
  timeline.Record(Times(0, 1.001), SomeExecution());
  timeline.Record(Times(0, 0.999), SomeExecution());
  EXPECT_EQ(timeline.Seconds()[0].ok, 0);
  EXPECT_EQ(timeline.Seconds()[1].ok, 2);
}

TEST(TimelineTest, RecordsNothingBeforeItsStartIsKnown) {
  Timeline timeline;
  timeline.Record(Times(0, 1), SomeExecution());
  EXPECT_TRUE(timeline.Seconds().empty());
}

}  // namespace timeline_test
}  // namespace attendant::client
