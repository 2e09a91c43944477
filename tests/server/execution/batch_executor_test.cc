// Tests of the runner with batches that no test over a socket can produce at will.
#include "server/execution/batch_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/execution/batch_report.h"
#include "server/execution/prepare_request.h"
#include "tests/server/support/service_parts.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace batch_executor_test {

class BatchExecutorTest : public ::testing::Test {
 protected:
  // Runs both layers of "tiny" on one sequence of two ids.
  BatchEntry MakeJob(absl::Time deadline, bool cancelled) {
    return MakeJob(MakeRequest(), deadline, cancelled);
  }

  ComputeRequest MakeRequest() const {
    ComputeRequest request;
    request.span = {parts_.models.Snapshot()->at("tiny"), 0, 2};
    request.layout.sequences = 1;
    request.layout.padded_length = 2;
    request.layout.rows = 2;
    request.layout.cu_seqlens = {0, 2};
    request.layout.positions = {0, 1};
    request.layout.runs = {{0, 2}};
    request.input = KeptIds{{1, 2}, {0, 1}, {}};
    request.outputs.hidden_states = true;
    return request;
  }

  BatchEntry MakeJob(ComputeRequest request, absl::Time deadline, bool cancelled) {
    auto job = std::make_shared<ComputeJob>(std::move(request),
                                            std::make_shared<std::atomic<bool>>(cancelled),
                                            [this](ComputeJob::End result) {
                                              if (on_end_) std::exchange(on_end_, nullptr)();
                                              ended_.push_back(result.response.status());
                                            });
    job->deadline = deadline;
    return {std::move(job), 0, 1};
  }

  // Returns when its jobs have ended.
  void Run(std::vector<BatchEntry> batch) { BatchExecutor(context_, 0).Run({std::move(batch)}); }

  ServiceParts parts_{absl::Seconds(1)};
  const ServiceContext context_ = parts_.Context({1, 1});
  std::function<void()> on_end_;  // of the first job
  std::vector<absl::Status> ended_;
};

TEST_F(BatchExecutorTest, StopsBetweenLayersWhenNoCallerWaits) {
  // The clock is asked at the start (0), for the job (1), after the gather (2), before the second
  // layer (3).
  std::vector<BatchEntry> batch;
  batch.push_back(MakeJob(absl::UnixEpoch() + absl::Seconds(3), false));
  Run(std::move(batch));
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(parts_.metrics.Scrape({}).find("attendant_batch_tokens_count{model=\"tiny\"} 1"),
            std::string::npos);
}

// There is nothing to place of what the layer would have left.
TEST_F(BatchExecutorTest, ARunThatFailsBeforeItsFirstLayerFailsItsJobs) {
  ComputeRequest request = MakeRequest();
  request.span.first_layer = 7;  // of two
  request.span.layers = 1;
  request.operation = AttendStage::kBlock;
  request.outputs.attention.layers = {7};
  std::vector<BatchEntry> batch;
  batch.push_back(MakeJob(std::move(request), absl::InfiniteFuture(), false));
  Run(std::move(batch));
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0], absl::InvalidArgumentError("layer: expected 0..1; got 7"));
}

TEST_F(BatchExecutorTest, GoesOnWhileOneJobIsWaitedFor) {
  std::vector<BatchEntry> batch;
  batch.push_back(MakeJob(absl::UnixEpoch() + absl::Seconds(3), false));
  batch.push_back(MakeJob(absl::InfiniteFuture(), false));
  Run(std::move(batch));
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_TRUE(ended_[1].ok()) << ended_[1];
}

TEST_F(BatchExecutorTest, DeadJobsAreNotGathered) {
  std::vector<BatchEntry> batch;
  batch.push_back(MakeJob(absl::InfiniteFuture(), true));
  batch.push_back(MakeJob(absl::InfinitePast(), false));
  Run(std::move(batch));
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_EQ(ended_[0].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ended_[1].code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(BatchExecutorTest, NoRowIsComputedForADeadJob) {
  std::vector<BatchEntry> batch;
  batch.push_back(MakeJob(absl::InfinitePast(), false));
  batch.push_back(MakeJob(absl::InfiniteFuture(), false));
  Run(std::move(batch));
  EXPECT_NE(parts_.metrics.Scrape({}).find("attendant_dead_rows_total{model=\"tiny\"} 0\n"),
            std::string::npos);
}

TEST_F(BatchExecutorTest, ComputesOnWhileItsAnswersAreSent) {
  absl::Notification ending, go;
  on_end_ = [&] {
    ending.Notify();
    EXPECT_TRUE(go.WaitForNotificationWithTimeout(absl::Minutes(1)));
  };
  std::optional<BatchExecutor> executor(std::in_place, context_, 0);
  executor->Run({{MakeJob(absl::InfiniteFuture(), false)}});
  ending.WaitForNotification();
  EXPECT_TRUE(ended_.empty());
  // The thread that ends batches has one, so this one is ended at once.
  executor->Run({{MakeJob(absl::InfiniteFuture(), false)}});
  EXPECT_EQ(ended_.size(), 1u);
  go.Notify();
  executor.reset();
  EXPECT_THAT(ended_, testing::ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_THAT(parts_.metrics.Scrape({}),
              testing::HasSubstr("attendant_batch_tokens_count{model=\"tiny\"} 2\n"));
}

// Jobs that wait have to wait for it, too.
class TimeBetweenBatchesTest : public BatchExecutorTest {
 protected:
  // Registers two rows for the first layer of "tiny".
  ComputeRequest MakeRegistration() const {
    v1::PutMemoryRequest message;
    message.set_model("tiny");
    *message.mutable_memory()->mutable_hidden_states() = FloatTensor({1, 2, 32}, SomeValues(64, 1));
    const grpc::Slice bytes(message.SerializeAsString());
    auto prepared = PrepareNow(PreparePutMemory(grpc::ByteBuffer(&bytes, 1), context_));
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return std::move(prepared->request);
  }

  // Runs a batch of one request, the given time after the batch before.
  void Run(ComputeRequest request, absl::Duration after, bool waited_for) {
    clock_.Advance(after);
    absl::Notification ended;
    auto job =
        std::make_shared<ComputeJob>(std::move(request), std::make_shared<std::atomic<bool>>(false),
                                     [&](const ComputeJob::End& end) {
                                       EXPECT_TRUE(end.response.ok()) << end.response.status();
                                       ended.Notify();
                                     });
    std::vector<BatchEntry> entries = {{std::move(job), 0, 1}};
    executor_->Run({.entries = std::move(entries), .waited_for = waited_for});
    ended.WaitForNotification();
  }

  // By this clock, computing takes no time: batches that have taken none are not counted.
  void ExpectBatchesThatTookTime(int count) {
    executor_.reset();
    const std::string series = "attendant_batch_cost_ratio_count{model=\"tiny\"} ";
    EXPECT_THAT(parts_.metrics.Scrape({}), testing::HasSubstr(absl::StrCat(series, count, "\n")));
  }

  static constexpr absl::Duration kLong = absl::Seconds(100);

  FakeClock clock_;
  const ServiceContext timed_ = {context_.models,  context_.admission, context_.queue,
                                 context_.metrics, context_.cross_kv,  clock_,
                                 context_.workers, context_.limits,    context_.thread_plan};
  std::optional<BatchExecutor> executor_{std::in_place, timed_, 0};
};

TEST_F(TimeBetweenBatchesTest, IsPartOfTheCostIfTheInstanceIsBusy) {
  for (const bool waited_for : {true, false, true}) {
    Run(MakeRequest(), kLong, waited_for);
  }
  ExpectBatchesThatTookTime(1);
}

TEST_F(TimeBetweenBatchesTest, IsPartOfTheCostOfRegistrationsToo) {
  for (const bool waited_for : {true, false, true}) {
    Run(MakeRegistration(), kLong, waited_for);
  }
  ExpectBatchesThatTookTime(1);
}

TEST_F(TimeBetweenBatchesTest, IsTakenFromTheBatchBeforeWhateverItsKind) {
  Run(MakeRegistration(), kLong, true);
  Run(MakeRequest(), absl::ZeroDuration(), false);
  Run(MakeRegistration(), kLong, false);  // takes time
  Run(MakeRequest(), absl::ZeroDuration(), false);
  Run(MakeRequest(), kLong, false);  // takes time
  Run(MakeRegistration(), absl::ZeroDuration(), false);
  ExpectBatchesThatTookTime(2);
}

TEST_F(BatchExecutorTest, RowsThatWereComputedForADeadJobWouldBeCounted) {
  BatchReport report(context_, TestModels().at("tiny"), context_.clock.Now());
  report.CountDeadline(absl::InfinitePast(), 5);
  report.CountDeadline(absl::InfiniteFuture(), 7);
  report.Gathered();
  report.Computed();
  report.Finish({}, 1);
  report.Record();
  EXPECT_NE(parts_.metrics.Scrape({}).find("attendant_dead_rows_total{model=\"tiny\"} 5\n"),
            std::string::npos);
}

}  // namespace batch_executor_test
}  // namespace attendant::server
