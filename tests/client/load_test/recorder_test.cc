#include "client/load_test/recorder.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace attendant::client {
namespace recorder_test {

const absl::Time kStart = absl::UnixEpoch();

RequestTimes Times(absl::Duration lag, absl::Duration latency) {
  return {.intended = kStart, .sent = kStart + lag, .answered = kStart + latency};
}

Execution SomeExecution() {
  Execution execution;
  execution.queue = absl::Milliseconds(1);
  execution.copy = absl::Milliseconds(2);
  execution.compute = absl::Milliseconds(3);
  execution.batch_tokens = 40;
  execution.batch_requests = 2;
  return execution;
}

TEST(RecorderTest, LatencyStartsAtTheIntendedTime) {
  Recorder recorder;
  recorder.Record(Times(absl::Milliseconds(5), absl::Milliseconds(8)), 10, SomeExecution());
  const Statistics total = recorder.Total();
  EXPECT_EQ(total.latency.max(), absl::Milliseconds(8));
  EXPECT_EQ(total.send_lag.max(), absl::Milliseconds(5));
  EXPECT_EQ(total.last_answer, kStart + absl::Milliseconds(8));
}

TEST(RecorderTest, ErrorsCountByCodeAndInTheLatency) {
  Recorder recorder;
  const RequestTimes times = Times(absl::ZeroDuration(), absl::Seconds(1));
  recorder.Record(times, 10, absl::ResourceExhaustedError("full"));
  recorder.Record(times, 10, absl::ResourceExhaustedError("full"));
  recorder.Record(times, 10, absl::UnavailableError("draining"));
  recorder.Record(times, 10, SomeExecution());
  const Statistics total = recorder.Total();
  EXPECT_EQ(total.ok, 1);
  EXPECT_EQ(total.tokens, 10);
  EXPECT_EQ(total.error_count(), 3);
  EXPECT_EQ(total.errors.at(absl::StatusCode::kResourceExhausted), 2);
  EXPECT_EQ(total.first_error, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(total.latency.count(), 4);
  EXPECT_EQ(total.send_lag.count(), 4);
}

TEST(RecorderTest, ATimeOutRaisesThePercentiles) {
  Recorder recorder;
  for (int i = 0; i < 9; ++i) {
    recorder.Record(Times(absl::ZeroDuration(), absl::Milliseconds(1)), 10, SomeExecution());
  }
  recorder.Record(Times(absl::ZeroDuration(), absl::Seconds(2)), 10,
                  absl::DeadlineExceededError("late"));
  EXPECT_EQ(recorder.Total().latency.Percentile(99), absl::Seconds(2));
  EXPECT_EQ(recorder.Total().latency.max(), absl::Seconds(2));
}

TEST(RecorderTest, InTimeAreAnswersWithinTheDeadlineFromTheIntendedTime) {
  Recorder recorder(absl::Milliseconds(10));
  recorder.Record(Times(absl::ZeroDuration(), absl::Milliseconds(10)), 1, SomeExecution());
  recorder.Record(Times(absl::Milliseconds(5), absl::Milliseconds(11)), 1, SomeExecution());
  recorder.Record(Times(absl::ZeroDuration(), absl::Milliseconds(1)), 1,
                  absl::ResourceExhaustedError("full"));
  EXPECT_EQ(recorder.Total().ok, 2);
  EXPECT_EQ(recorder.Total().in_time, 1);
  recorder.TakeInterval();
  EXPECT_EQ(recorder.Total().in_time, 1);
}

TEST(RecorderTest, WithoutADeadlineEveryAnswerIsInTime) {
  Recorder recorder;
  recorder.Record(Times(absl::ZeroDuration(), absl::Hours(1)), 1, SomeExecution());
  EXPECT_EQ(recorder.Total().in_time, 1);
}

TEST(RecorderTest, IntervalsAddUpToTheTotal) {
  Recorder recorder;
  for (int i = 1; i <= 10; ++i) {
    recorder.Record(Times(absl::ZeroDuration(), absl::Milliseconds(i)), i, SomeExecution());
    if (i == 4) {
      EXPECT_EQ(recorder.TakeInterval().ok, 4);
    }
  }
  const Statistics rest = recorder.TakeInterval();
  EXPECT_EQ(rest.ok, 6);
  EXPECT_EQ(rest.tokens, 45);
  const Statistics total = recorder.Total();
  EXPECT_EQ(total.ok, 10);
  EXPECT_EQ(total.tokens, 55);
  EXPECT_EQ(total.latency.count(), 10);
  EXPECT_EQ(total.compute, absl::Milliseconds(30));
  EXPECT_EQ(total.batch_tokens, 400);
}

TEST(RecorderTest, CountsFromManyThreads) {
  Recorder recorder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        recorder.Record(Times(absl::ZeroDuration(), absl::Milliseconds(1)), 2, SomeExecution());
        if (i % 100 == 0) recorder.TakeInterval();
        recorder.RecordWarmup();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.Total().ok, 2000);
  EXPECT_EQ(recorder.Total().tokens, 4000);
  EXPECT_EQ(recorder.warmup_requests(), 2000);
}

}  // namespace recorder_test
}  // namespace attendant::client
