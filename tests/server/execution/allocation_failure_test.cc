// Fails every allocation of the runner of batches, and of the queue, one at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/base/fault.h"
#include "server/batching/batch_queue.h"
#include "server/execution/batch_executor.h"
#include "server/metrics/refusal.h"
#include "tests/server/support/service_parts.h"
#include "tests/support/allocation_counter.h"

namespace attendant::server {
namespace allocation_failure_test {

constexpr size_t kJobs = 3;  // the last one in two slices

class AllocationFailureTest : public ::testing::Test {
 protected:
  AllocationFailureTest() {
    ModelDescription model = TestModels().at("tiny")->encoder->description();
    model.vocabulary_head = {.width = 16};
    parts_.models.Replace(PrepareModels(ModelOf("tiny", model), {context_.limits.max_request_tokens,
                                                                 ThreadPlan{1, 1}, parts_.clock}));
  }

  ~AllocationFailureTest() override { go_.Notify(); }

  // Keeps the thread that ends batches busy, so that this one ends them, where allocations fail.
  void CompleteBatchesHere() {
    absl::Notification busy;
    on_end_ = [&] {
      busy.Notify();
      go_.WaitForNotification();
    };
    Batch batch;
    batch.entries = {{MakeJob(0, 1, false), 0, 1}};
    executor_.Run(batch);
    busy.WaitForNotification();
  }

  // Runs both layers of "tiny" on sequences of two ids.
  std::shared_ptr<ComputeJob> MakeJob(size_t index, int32_t sequences, bool wants_all) {
    ComputeRequest request;
    request.span = {parts_.models.Snapshot()->at("tiny"), 0, 2};
    request.layout.sequences = sequences;
    request.layout.padded_length = 2;
    request.layout.rows = 2 * sequences;
    request.layout.runs = {{0, 2 * sequences}};
    KeptIds ids;
    for (int32_t b = 0; b < sequences; ++b) {
      request.layout.cu_seqlens.push_back(2 * (b + 1));
      request.layout.positions.insert(request.layout.positions.end(), {0, 1});
      ids.words.insert(ids.words.end(), {1, 2});
      ids.positions.insert(ids.positions.end(), {0, 1});
    }
    request.input = std::move(ids);
    request.outputs.hidden_states.emplace();
    request.outputs.pooled.emplace();
    request.outputs.sparse = wants_all || sequences > 1;
    if (wants_all) {
      request.outputs.intermediate_layers = {0};
      request.outputs.attention.layers = {0, 1};
    }
    return std::make_shared<ComputeJob>(std::move(request), cancelled_,
                                        [this, index](ComputeJob::End result) {
                                          if (on_end_) std::exchange(on_end_, nullptr)();
                                          ++ends_[index];
                                          statuses_[index] = result.response.status();
                                        });
  }

  // Returns whether the allocation of that number was reached.
  bool RunWithFailure(int64_t nth) {
    ends_ = {};
    const std::shared_ptr<ComputeJob> sliced = MakeJob(2, 2, false);
    Batch batch;
    batch.entries = {
        {MakeJob(0, 1, true), 0, 1}, {MakeJob(1, 1, false), 0, 1}, {sliced, 0, 1}, {sliced, 1, 1}};
    const attendant::test_support::FailingAllocation failing(nth);
    executor_.Run(batch);
    return failing.failed();
  }

  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  ServiceParts parts_{absl::Microseconds(1)};
  const ServiceContext context_ = parts_.Context({1, 1});
  absl::Notification go_;
  std::function<void()> on_end_;  // of the first job
  std::array<int, kJobs> ends_ = {};
  std::array<absl::Status, kJobs> statuses_;
  BatchExecutor executor_{context_, 0};
};

TEST_F(AllocationFailureTest, EveryJobEndsOnceAndMostlyOneFails) {
  CompleteBatchesHere();
  RunWithFailure(0);  // prepares what is kept between batches
  std::array<int, kJobs> alone = {};
  int64_t nth = 1;
  for (; RunWithFailure(nth); ++nth) {
    SCOPED_TRACE(nth);
    for (size_t i = 0; i < kJobs; ++i) {
      ASSERT_EQ(ends_[i], 1);
      if (!statuses_[i].ok()) {
        EXPECT_EQ(ReasonOf(statuses_[i]), "memory") << statuses_[i];
      }
    }
    const auto failed = [](const absl::Status& status) { return !status.ok(); };
    if (std::count_if(statuses_.begin(), statuses_.end(), failed) != 1) continue;
    ++alone[std::find_if(statuses_.begin(), statuses_.end(), failed) - statuses_.begin()];
  }
  EXPECT_GT(nth, 20);
  EXPECT_GT(alone[0], 5);
  EXPECT_GT(alone[2], 5) << "the job in slices";
  for (const absl::Status& status : statuses_) EXPECT_TRUE(status.ok()) << status;
}

TEST_F(AllocationFailureTest, TheQueueLosesNoJobForWhichNobodyWaits) {
  bool failed = true;
  for (int64_t nth = 1; failed; ++nth) {
    SCOPED_TRACE(nth);
    ends_ = {};
    BatchQueue queue(parts_.clock, {}, {});
    for (size_t i = 0; i < kJobs; ++i) {
      ASSERT_TRUE(queue.Submit(MakeJob(i, 1, false)).ok());
    }
    cancelled_->store(true);
    {
      const attendant::test_support::FailingAllocation failing(nth);
      Guarded([&] { queue.FailExpired(); }).IgnoreError();
      failed = failing.failed();
    }
    queue.FailExpired();
    for (size_t i = 0; i < kJobs; ++i) {
      EXPECT_EQ(ends_[i], 1);
      EXPECT_EQ(statuses_[i].code(), absl::StatusCode::kCancelled);
    }
    cancelled_->store(false);
  }
}

TEST_F(AllocationFailureTest, TheQueueHandsOutEveryJobInTheEnd) {
  bool failed = true;
  for (int64_t nth = 1; failed; ++nth) {
    SCOPED_TRACE(nth);
    ends_ = {};
    BatchQueue queue(parts_.clock, {}, {});
    for (size_t i = 0; i < kJobs; ++i) {
      ASSERT_TRUE(queue.Submit(MakeJob(i, 1, false)).ok());
    }
    queue.Close();
    size_t entries = 0;
    {
      const attendant::test_support::FailingAllocation failing(nth);
      entries = queue.Take().entries.size();
      failed = failing.failed();
    }
    while (entries < kJobs) {
      const size_t more = queue.Take().entries.size();
      ASSERT_GT(more, 0u) << "after " << entries;
      entries += more;
    }
    EXPECT_EQ(entries, kJobs);
    EXPECT_TRUE(queue.Take().entries.empty());
  }
}

TEST_F(AllocationFailureTest, ARefusedSubmitLosesNoJobForWhichNobodyWaits) {
  bool failed = true;
  for (int64_t nth = 1; failed; ++nth) {
    SCOPED_TRACE(nth);
    ends_ = {};
    BatchQueue queue(parts_.clock, {.max_jobs = 2}, {});
    ASSERT_TRUE(queue.Submit(MakeJob(0, 1, false)).ok());
    ASSERT_TRUE(queue.Submit(MakeJob(1, 1, false)).ok());
    cancelled_->store(true);
    cancelled_ = std::make_shared<std::atomic<bool>>(false);  // of the next one
    std::shared_ptr<ComputeJob> job = MakeJob(2, 1, false);
    absl::Status status;
    {
      const attendant::test_support::FailingAllocation failing(nth);
      status = Guarded([&] { return queue.Submit(std::move(job)); });
      failed = failing.failed();
    }
    queue.FailExpired();
    EXPECT_EQ(ends_[0], 1);
    EXPECT_EQ(ends_[1], 1);
    EXPECT_EQ(queue.counts().jobs, status.ok() ? 1 : 0) << status;
  }
}

TEST_F(AllocationFailureTest, ARefusedSubmitMixesNoPeersUp) {
  bool failed = true;
  for (int64_t nth = 1; failed; ++nth) {
    SCOPED_TRACE(nth);
    BatchQueue queue(parts_.clock, {.max_jobs = 3, .reserved_jobs = 1}, {});
    const auto of_peer = [&](const char* name) {
      std::shared_ptr<ComputeJob> job = MakeJob(0, 1, false);
      job->peer = name;
      return job;
    };
    const char* first = "token 0123456789abcdef";
    std::shared_ptr<ComputeJob> job = of_peer(first);
    absl::Status status;
    {
      const attendant::test_support::FailingAllocation failing(nth);
      status = Guarded([&] { return queue.Submit(std::move(job)); });
      failed = failing.failed();
    }
    if (status.ok()) continue;
    EXPECT_TRUE(queue.Submit(of_peer("token fedcba9876543210")).ok());
    EXPECT_TRUE(queue.Submit(of_peer(first)).ok());
    // It has no more than is free. A peer alone would have to leave the reserve.
    EXPECT_TRUE(queue.Submit(of_peer(first)).ok());
  }
}

}  // namespace allocation_failure_test
}  // namespace attendant::server
