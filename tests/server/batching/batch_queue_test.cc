#include "server/batching/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/metrics/refusal.h"
#include "tests/server/batching/test_job.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Duration kMs = absl::Milliseconds(1);

class BatchQueueTest : public testing::Test {
 protected:
  // Makes jobs with the ids 0, 1, …
  std::unique_ptr<Job> Make(int64_t tokens, int model = 0) {
    const int id = made_++;
    return std::make_unique<TestJob>(fates_.at(id), id, tokens, model);
  }
  std::unique_ptr<Job> MakeDue(int64_t tokens, absl::Time deadline) {
    std::unique_ptr<Job> job = Make(tokens);
    job->deadline = deadline;
    return job;
  }
  static absl::Status Submit(BatchQueue& queue, std::unique_ptr<Job> job) {
    absl::Status status = queue.Submit(job);
    EXPECT_EQ(job == nullptr, status.ok());  // ownership moves on success only
    return status;
  }

  std::array<Fate, 64> fates_;
  int made_ = 0;
  FakeClock clock_;
};

TEST_F(BatchQueueTest, HandsOutWhatCameInOrder) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 100});
  for (int64_t tokens : {40, 70, 50, 10}) ASSERT_TRUE(Submit(queue, Make(tokens)).ok());
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(0, 2, 3));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(1));
}

TEST_F(BatchQueueTest, StampsTheArrival) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  clock_.Advance(3 * kMs);
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  clock_.Advance(kMs);
  EXPECT_EQ(queue.Take().front()->enqueued, absl::UnixEpoch() + 3 * kMs);
}

TEST_F(BatchQueueTest, CountsWhatWaits) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 10});
  ASSERT_TRUE(Submit(queue, Make(10)).ok());
  ASSERT_TRUE(Submit(queue, Make(7)).ok());
  EXPECT_EQ(queue.counts().jobs, 2);
  EXPECT_EQ(queue.counts().tokens, 17);
  queue.Take();
  EXPECT_EQ(queue.counts().jobs, 1);
  EXPECT_EQ(queue.counts().tokens, 7);
}

TEST_F(BatchQueueTest, RefusesWhatPassesABoundAndNamesIt) {
  BatchQueue queue(clock_, {.max_jobs = 3, .max_tokens = 100}, BatchLimits());
  ASSERT_TRUE(Submit(queue, Make(50)).ok());

  absl::Status status = Submit(queue, Make(51));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("holds 50 of at most 100 tokens, this request brings 51"));

  EXPECT_EQ(ReasonOf(status), "queue_tokens");

  ASSERT_TRUE(Submit(queue, Make(50)).ok());  // exactly at the limit of tokens
  ASSERT_TRUE(Submit(queue, Make(0)).ok());
  status = Submit(queue, Make(0));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("holds 3 of at most 3 jobs"));
  EXPECT_EQ(ReasonOf(status), "queue_jobs");

  queue.Take();
  EXPECT_TRUE(Submit(queue, Make(60)).ok());
}

TEST_F(BatchQueueTest, FailsTheDeadAtOnce) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  ASSERT_TRUE(Submit(queue, Make(2)).ok());
  fates_[0].cancelled = true;
  queue.FailDead();
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_TRUE(fates_[0].destroyed);
  EXPECT_EQ(queue.counts().jobs, 1);
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(1));
}

TEST_F(BatchQueueTest, RefusesTheDeadAndTheLate) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  absl::Status status = Submit(queue, MakeDue(1, clock_.Now()));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the deadline passed"));

  fates_[1].cancelled = true;
  status = Submit(queue, Make(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the caller has cancelled"));

  queue.Close();
  status = Submit(queue, Make(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("shutting down"));
  for (int i = 0; i < made_; ++i) EXPECT_EQ(fates_[i].failures, 0) << "the caller answers " << i;
}

TEST_F(BatchQueueTest, TakeFailsWhatExpiredOrWasCancelled) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(Submit(queue, MakeDue(1, clock_.Now() + 5 * kMs)).ok());
  ASSERT_TRUE(Submit(queue, MakeDue(1, clock_.Now() + 6 * kMs)).ok());
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  clock_.Advance(5 * kMs);
  fates_[2].cancelled = true;
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(1, 3));
  EXPECT_EQ(fates_[0].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(fates_[2].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_EQ(fates_[2].failures, 1);
  EXPECT_TRUE(fates_[0].destroyed);
  EXPECT_EQ(queue.counts().jobs, 0);
}

TEST_F(BatchQueueTest, TheDeadMakeRoomForTheLiving) {
  BatchQueue queue(clock_, {.max_jobs = 2}, BatchLimits());
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  ASSERT_TRUE(Submit(queue, Make(2)).ok());
  fates_[0].cancelled = true;
  EXPECT_TRUE(Submit(queue, Make(3)).ok());
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_EQ(queue.counts().tokens, 5);
}

// A job that calls the queue when it fails, as a stream does that submits its next item.
class CallingJob final : public Job {
 public:
  CallingJob(BatchQueue& queue, int64_t& seen) : queue_(queue), seen_(seen) {}
  ~CallingJob() override { queue_.counts(); }
  bool cancelled() const override { return false; }
  void Fail(const absl::Status&) override { seen_ = queue_.counts().jobs; }

 private:
  BatchQueue& queue_;
  int64_t& seen_;
};

TEST_F(BatchQueueTest, FailsJobsWithoutTheLock) {
  int64_t seen_by_take = -1, seen_by_submit = -1, seen_by_fail_all = -1;
  BatchQueue queue(clock_, {.max_jobs = 1}, BatchLimits());
  auto expiring = [&](int64_t& seen) {
    auto job = std::make_unique<CallingJob>(queue, seen);
    job->deadline = clock_.Now() + kMs;
    return job;
  };
  ASSERT_TRUE(Submit(queue, expiring(seen_by_submit)).ok());
  clock_.Advance(kMs);
  ASSERT_TRUE(Submit(queue, expiring(seen_by_take)).ok());
  EXPECT_EQ(seen_by_submit, 1);  // the new job has been accepted
  clock_.Advance(kMs);
  queue.Close();
  EXPECT_THAT(queue.Take(), IsEmpty());
  EXPECT_EQ(seen_by_take, 0);

  BatchQueue second(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(Submit(second, std::make_unique<CallingJob>(second, seen_by_fail_all)).ok());
  second.FailAll(absl::UnavailableError("gone"));
  EXPECT_EQ(seen_by_fail_all, 0);
}

TEST_F(BatchQueueTest, ANewJobStartsAtOnceOnAnIdleInstance) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  std::vector<int> taken;
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, absl::InfiniteFuture());
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  instance.join();  // although the clock has not advanced
  EXPECT_THAT(taken, ElementsAre(0));
}

TEST_F(BatchQueueTest, WaitsForCompanyUntilTheDelayHasPassed) {
  BatchQueue queue(clock_, QueueLimits(), {.max_queue_delay = 10 * kMs});
  const absl::Time due = clock_.Now() + 10 * kMs;
  std::vector<int> taken;
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, due);
  clock_.Advance(9 * kMs);
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  clock_.WaitForWaiters(1, due);
  EXPECT_EQ(queue.counts().jobs, 2);
  clock_.Advance(kMs);
  instance.join();
  EXPECT_THAT(taken, ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, WaitsForCompanyUntilTheBatchIsFull) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 2, .max_queue_delay = kMs});
  std::vector<int> taken;
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, clock_.Now() + kMs);
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  instance.join();
  EXPECT_THAT(taken, ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, AJobThatIsCancelledWhileItWaitsForCompanyIsNotHandedOut) {
  BatchQueue queue(clock_, QueueLimits(), {.max_queue_delay = kMs});
  const absl::Time due = clock_.Now() + kMs;
  std::vector<int> taken;
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, due);
  fates_[0].cancelled = true;
  clock_.Advance(kMs);
  clock_.WaitForWaiters(1, absl::InfiniteFuture());
  EXPECT_EQ(fates_[0].failures, 1);
  queue.Close();
  instance.join();
  EXPECT_THAT(taken, IsEmpty());
}

// Two instances are idle, each job sends one signal, and the second job makes the batch of the
// first full. The instance that takes it leaves a job that could start at once, while the other
// instance waits for something else.
TEST_F(BatchQueueTest, TakingABatchWakesTheNextInstanceForTheRest) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 10, .max_queue_delay = kMs});
  std::array<std::vector<int>, 2> taken;
  std::thread first([&] { taken[0] = Ids(queue.Take()); });
  std::thread second([&] { taken[1] = Ids(queue.Take()); });
  clock_.WaitForWaiters(2, absl::InfiniteFuture());
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  clock_.WaitForWaiters(1, clock_.Now() + kMs);
  ASSERT_TRUE(Submit(queue, Make(10)).ok());
  first.join();
  second.join();  // although the clock has not advanced
  EXPECT_THAT(taken, testing::UnorderedElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST_F(BatchQueueTest, CloseHandsOutTheRestWithoutWaiting) {
  BatchQueue queue(clock_, QueueLimits(), {.max_queue_delay = absl::InfiniteDuration()});
  std::vector<int> taken;
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  ASSERT_TRUE(Submit(queue, Make(1, 1)).ok());
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, absl::InfiniteFuture());
  queue.Close();
  instance.join();
  EXPECT_THAT(taken, ElementsAre(0));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(1));
  EXPECT_THAT(queue.Take(), IsEmpty());
  EXPECT_THAT(queue.Take(), IsEmpty());
  queue.Close();  // closing twice is harmless
}

TEST_F(BatchQueueTest, FailAllFailsWhatWaitsAndLeavesTheQueueOpen) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  ASSERT_TRUE(Submit(queue, Make(1, 1)).ok());
  queue.FailAll(absl::UnavailableError("drained too long"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fates_[i].failures, 1);
    EXPECT_EQ(fates_[i].status, absl::UnavailableError("drained too long"));
  }
  EXPECT_EQ(queue.counts().jobs, 0);
  EXPECT_EQ(queue.counts().tokens, 0);
  ASSERT_TRUE(Submit(queue, Make(1)).ok());
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(2));
}

TEST_F(BatchQueueTest, DestructionFailsWhatWaits) {
  {
    BatchQueue queue(clock_, QueueLimits(), BatchLimits());
    ASSERT_TRUE(Submit(queue, Make(1)).ok());
  }
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_EQ(fates_[0].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(fates_[0].destroyed);
}

}  // namespace
}  // namespace attendant::server
