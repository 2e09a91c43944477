#include "server/batching/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "server/metrics/refusal.h"
#include "tests/server/batching/batch_queue_fixture.h"

namespace attendant::server {
namespace batch_queue_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(BatchQueueTest, HandsOutWhatCameInOrder) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 100});
  for (int64_t tokens : {40, 70, 50, 10}) ASSERT_TRUE(queue.Submit(Make(tokens)).ok());
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(0, 2, 3));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(1));
}

TEST_F(BatchQueueTest, TellsWhetherAnInstanceWaitedForABatch) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  EXPECT_FALSE(queue.Take().waited_for);
  std::thread instance([&] { EXPECT_TRUE(queue.Take().waited_for); });
  clock_.WaitForWaiters(1, absl::InfiniteFuture());
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  instance.join();
}

TEST_F(BatchQueueTest, StampsTheArrival) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  clock_.Advance(3 * kMs);
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  clock_.Advance(kMs);
  EXPECT_EQ(queue.Take().entries.front().job->enqueued, absl::UnixEpoch() + 3 * kMs);
}

TEST_F(BatchQueueTest, CountsWhatWaits) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 10});
  ASSERT_TRUE(queue.Submit(Make(10)).ok());
  ASSERT_TRUE(queue.Submit(Make(7)).ok());
  EXPECT_EQ(queue.counts().jobs, 2);
  EXPECT_EQ(queue.counts().tokens, 17);
  queue.Take();
  EXPECT_EQ(queue.counts().jobs, 1);
  EXPECT_EQ(queue.counts().tokens, 7);
}

TEST_F(BatchQueueTest, CountsTheTokensOfSlices) {
  BatchQueue queue(clock_, {.max_tokens = 5}, BatchLimits());
  const std::shared_ptr<TestJob> masked = Make(0);
  masked->slices = {{3, 3, 0.001}};
  ASSERT_TRUE(queue.Submit(masked).ok());
  EXPECT_EQ(queue.counts().tokens, 3);
  const std::shared_ptr<TestJob> more = Make(0);
  more->peer = "another";
  more->slices = {{3, 3, 0.001}};
  EXPECT_EQ(queue.Submit(more).code(), absl::StatusCode::kResourceExhausted);
  queue.Take();
  EXPECT_EQ(queue.counts().tokens, 0);
}

TEST_F(BatchQueueTest, RefusesWhatPassesItsBoundOfSeconds) {
  BatchQueue queue(clock_, {.max_seconds = 100 * kMs}, {.instances = 2});
  const auto submit = [&](const char* peer, double seconds) {
    const std::shared_ptr<TestJob> job = Make(1);
    job->peer = peer;
    job->slices = {{1, 1, seconds}};
    return queue.Submit(job);
  };
  ASSERT_TRUE(submit("a", 0.5).ok());  // alone it may take longer
  absl::Status status = submit("b", 0.11);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "queue_seconds");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the queue is full (0.055 of 0.100 predicted seconds, "
                        "--max-queue-seconds); this request needs 0.055"));
  EXPECT_TRUE(submit("b", 0.1).ok());
  EXPECT_FALSE(submit("c", 0.07).ok());
  queue.Take();
  EXPECT_TRUE(submit("c", 0.07).ok());
}

TEST_F(BatchQueueTest, TheDefaultDeadlineBeginsAtThePredictedEnd) {
  BatchQueue queue(clock_, {.default_deadline = absl::Seconds(10)}, BatchLimits());
  const auto submit = [&] {
    const std::shared_ptr<TestJob> job = Make(1);
    job->slices = {{1, 1, 100}};
    EXPECT_TRUE(queue.Submit(job).ok());
    return absl::ToDoubleSeconds(job->deadline - clock_.Now());
  };
  EXPECT_NEAR(submit(), 110, 1e-6);
  EXPECT_NEAR(submit(), 235, 1e-6);  // behind the first one, which may take a quarter longer
  const std::shared_ptr<TestJob> own = MakeDue(1, clock_.Now() + absl::Hours(1));
  EXPECT_TRUE(queue.Submit(own).ok());
  EXPECT_EQ(own->deadline, clock_.Now() + absl::Hours(1));
}

TEST_F(BatchQueueTest, RefusesWhatCannotMeetItsDeadlineBehindTheOthers) {
  BatchQueue queue(clock_, QueueLimits(), {.instances = 2});
  const auto submit = [&](const char* peer, double seconds, absl::Duration deadline) {
    const std::shared_ptr<TestJob> job = Make(1);
    job->peer = peer;
    job->slices = {{1, 1, seconds}};
    job->deadline = clock_.Now() + deadline;
    return queue.Submit(job);
  };
  absl::Status status = submit("a", 0.1, 99 * kMs);  // by itself
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ReasonOf(status), "deadline_hopeless");
  EXPECT_THAT(std::string(status.message()), HasSubstr("the deadline cannot be met"));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(submit("a", 0.1, absl::Minutes(1)).ok());
  // What its own peer has waiting with a later deadline does not count.
  EXPECT_TRUE(submit("a", 0.1, 110 * kMs).ok());
  EXPECT_FALSE(submit("a", 0.1, 110 * kMs).ok());
  // Another peer has its fair share: half of 100 ms of the first, then its own. The wait might
  // become a quarter longer.
  EXPECT_FALSE(submit("b", 0.1, 162 * kMs).ok());
  EXPECT_TRUE(submit("b", 0.1, 163 * kMs).ok());
  EXPECT_FALSE(submit("c", 0.1, 150 * kMs).ok());
}

TEST_F(BatchQueueTest, ChecksAnotherJobAsTheSmallestOfItsPeer) {
  BatchQueue queue(clock_, {.max_jobs = 4}, BatchLimits());
  const auto submit = [&](const char* peer, double seconds) {
    const std::shared_ptr<TestJob> job = Make(1);
    job->peer = peer;
    job->slices = {{1, 1, seconds}};
    return queue.Submit(job);
  };
  const auto check = [&](const char* peer, absl::Duration deadline) {
    return queue.CheckAnother(peer, clock_.Now() + deadline);
  };
  EXPECT_TRUE(check("a", kMs).ok());  // nothing is known of it
  ASSERT_TRUE(submit("a", 0.3).ok());
  EXPECT_EQ(ReasonOf(check("a", 299 * kMs)), "deadline_hopeless");
  EXPECT_TRUE(check("a", 300 * kMs).ok());
  ASSERT_TRUE(submit("a", 0.1).ok());
  EXPECT_EQ(ReasonOf(check("a", 99 * kMs)), "deadline_hopeless");
  EXPECT_TRUE(check("a", 100 * kMs).ok());
  EXPECT_TRUE(check("b", kMs).ok());
  EXPECT_EQ(queue.counts().jobs, 2);

  ASSERT_TRUE(submit("a", 0.1).ok());
  EXPECT_TRUE(queue.CheckAnother("a", absl::InfiniteFuture()).ok());
  ASSERT_TRUE(submit("a", 0.1).ok());
  EXPECT_EQ(ReasonOf(queue.CheckAnother("a", absl::InfiniteFuture())), "queue_jobs");
  EXPECT_TRUE(queue.CheckAnother("b", absl::InfiniteFuture()).ok());
}

TEST_F(BatchQueueTest, TheBacklogIsWhatWaitsAndWhatRuns) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_seconds = kMs, .instances = 2});
  EXPECT_EQ(queue.Backlog(), absl::ZeroDuration());
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<TestJob> job = Make(1);
    job->slices = {{1, 1, 0.1}};
    ASSERT_TRUE(queue.Submit(job).ok());
  }
  EXPECT_EQ(queue.Backlog(), 100 * kMs);
  queue.Take();
  EXPECT_EQ(queue.Backlog(), 100 * kMs);
  clock_.Advance(60 * kMs);
  EXPECT_EQ(queue.Backlog(), 70 * kMs);
  clock_.Advance(60 * kMs);  // it takes longer than predicted
  EXPECT_EQ(queue.Backlog(), 50 * kMs);
}

TEST_F(BatchQueueTest, TakeFailsWhatHasBecomeHopeless) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  const std::shared_ptr<TestJob> job = Make(1);
  job->slices = {{1, 1, 0.1}};
  job->deadline = clock_.Now() + 150 * kMs;
  ASSERT_TRUE(queue.Submit(job).ok());
  clock_.Advance(51 * kMs);
  queue.Close();
  EXPECT_THAT(Ids(queue.Take()), IsEmpty());
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_EQ(fates_[0].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ReasonOf(fates_[0].status), "deadline_hopeless");
}

TEST_F(BatchQueueTest, RefusesWhatPassesABoundAndNamesIt) {
  BatchQueue queue(clock_, {.max_jobs = 3, .max_tokens = 100}, BatchLimits());
  ASSERT_TRUE(queue.Submit(Make(50)).ok());

  absl::Status status = queue.Submit(Make(101));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the request has 101 tokens, including memory rows; the server allows 100 in the queue "
            "(--max-queue-tokens)");
  const std::shared_ptr<TestJob> another = Make(51);
  another->peer = "another";
  status = queue.Submit(another);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("the queue is full (50 of 100 tokens, --max-queue-tokens); this request needs 51"));
  EXPECT_EQ(ReasonOf(status), "queue_tokens");

  ASSERT_TRUE(queue.Submit(Make(50)).ok());
  ASSERT_TRUE(queue.Submit(Make(0)).ok());
  status = queue.Submit(Make(0));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the queue is full (3 of 3 jobs, --max-queue-requests)"));
  EXPECT_EQ(ReasonOf(status), "queue_jobs");

  queue.Take();
  EXPECT_TRUE(queue.Submit(Make(60)).ok());
}

TEST_F(BatchQueueTest, RefusesTheDeadAndTheLate) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  absl::Status status = queue.Submit(MakeDue(1, clock_.Now()));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the deadline passed"));

  fates_[1].cancelled = true;
  status = queue.Submit(Make(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the client cancelled"));

  queue.Close();
  status = queue.Submit(Make(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("shutting down"));
  for (int i = 0; i < made_; ++i) EXPECT_EQ(fates_[i].failures, 0) << "the caller answers " << i;
}

TEST_F(BatchQueueTest, TakeFailsWhatExpiredOrWasCancelled) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(queue.Submit(MakeDue(1, clock_.Now() + 5 * kMs)).ok());
  ASSERT_TRUE(queue.Submit(MakeDue(1, clock_.Now() + 6 * kMs)).ok());
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
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
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  ASSERT_TRUE(queue.Submit(Make(2)).ok());
  fates_[0].cancelled = true;
  EXPECT_TRUE(queue.Submit(Make(3)).ok());
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_EQ(queue.counts().tokens, 5);
}

// Jobs may call the queue when they fail, as a stream does that submits its next item.
TEST_F(BatchQueueTest, FailsJobsWithoutTheLock) {
  int64_t seen_by_take = -1, seen_by_submit = -1, seen_by_fail_all = -1;
  BatchQueue queue(clock_, {.max_jobs = 1}, BatchLimits());
  const auto call = [this](BatchQueue& called, int64_t& seen) {
    Fate& fate = fates_.at(made_);
    fate.on_failure = [&] { seen = called.counts().jobs; };
    fate.on_destruction = [&] { called.counts(); };
  };
  call(queue, seen_by_submit);
  ASSERT_TRUE(queue.Submit(MakeDue(1, clock_.Now() + kMs)).ok());
  clock_.Advance(kMs);
  call(queue, seen_by_take);
  ASSERT_TRUE(queue.Submit(MakeDue(1, clock_.Now() + kMs)).ok());
  EXPECT_EQ(seen_by_submit, 1);  // the new job has been accepted
  clock_.Advance(kMs);
  queue.Close();
  EXPECT_THAT(Ids(queue.Take()), IsEmpty());
  EXPECT_EQ(seen_by_take, 0);

  BatchQueue second(clock_, QueueLimits(), BatchLimits());
  call(second, seen_by_fail_all);
  ASSERT_TRUE(second.Submit(Make(1)).ok());
  second.FailAll(absl::UnavailableError("gone"));
  EXPECT_EQ(seen_by_fail_all, 0);
}

TEST_F(BatchQueueTest, FailExpiredFreesTheRoomOfTheExpiredAtOnce) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  ASSERT_TRUE(queue.Submit(Make(2)).ok());
  ASSERT_TRUE(queue.Submit(MakeDue(4, clock_.Now() + kMs)).ok());
  fates_[0].cancelled = true;
  clock_.Advance(kMs);
  queue.FailExpired();
  EXPECT_EQ(queue.counts().jobs, 1);
  EXPECT_EQ(queue.counts().tokens, 2);
  EXPECT_EQ(fates_[0].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(fates_[2].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(fates_[0].destroyed && fates_[2].destroyed);
  EXPECT_EQ(fates_[1].failures, 0);
}

TEST_F(BatchQueueTest, HandsOutAJobInSlicesAndFailsTheRestOnce) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_seconds = 20 * kMs});
  const std::shared_ptr<TestJob> job = Make(6);
  job->slices = {{2, 3, 0.015}, {1, 1, 0.015}, {3, 2, 0.015}};
  ASSERT_TRUE(queue.Submit(job).ok());
  EXPECT_NEAR(queue.counts().seconds, 0.045, 1e-9);
  for (const auto& [first, sequences, left] : {std::array{0, 2, 3}, std::array{2, 1, 2}}) {
    const Batch batch = queue.Take();
    ASSERT_EQ(batch.entries.size(), 1u);
    EXPECT_EQ(batch.entries[0].first_sequence, first);
    EXPECT_EQ(batch.entries[0].sequences, sequences);
    EXPECT_EQ(batch.close, BatchClose::kSeconds);
    EXPECT_EQ(queue.counts().jobs, 1);
    EXPECT_EQ(queue.counts().tokens, left);
  }
  EXPECT_NEAR(queue.counts().seconds, 0.015, 1e-9);
  fates_[0].cancelled = true;
  queue.FailExpired();
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_EQ(queue.counts().jobs, 0);
  EXPECT_EQ(queue.counts().tokens, 0);
  EXPECT_EQ(queue.counts().seconds, 0);
}

TEST_F(BatchQueueTest, ANewJobStartsAtOnceOnAnIdleInstance) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  std::vector<int> taken;
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, absl::InfiniteFuture());
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  instance.join();  // although the clock has not advanced
  EXPECT_THAT(taken, ElementsAre(0));
}

TEST_F(BatchQueueTest, WaitsForCompanyUntilTheDelayHasPassed) {
  BatchQueue queue(clock_, QueueLimits(), {.max_queue_delay = 10 * kMs});
  const absl::Time due = clock_.Now() + 10 * kMs;
  std::vector<int> taken;
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, due);
  clock_.Advance(9 * kMs);
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  clock_.WaitForWaiters(1, due);
  EXPECT_EQ(queue.counts().jobs, 2);
  clock_.Advance(kMs);
  instance.join();
  EXPECT_THAT(taken, ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, WaitsForCompanyUntilTheBatchIsFull) {
  BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 2, .max_queue_delay = kMs});
  std::vector<int> taken;
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, clock_.Now() + kMs);
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  instance.join();
  EXPECT_THAT(taken, ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, AJobThatIsCancelledWhileItWaitsForCompanyIsNotHandedOut) {
  BatchQueue queue(clock_, QueueLimits(), {.max_queue_delay = kMs});
  const absl::Time due = clock_.Now() + kMs;
  std::vector<int> taken;
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
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
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  clock_.WaitForWaiters(1, clock_.Now() + kMs);
  ASSERT_TRUE(queue.Submit(Make(10)).ok());
  first.join();
  second.join();  // although the clock has not advanced
  EXPECT_THAT(taken, testing::UnorderedElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST_F(BatchQueueTest, CloseHandsOutTheRestWithoutWaiting) {
  BatchQueue queue(clock_, QueueLimits(), {.max_queue_delay = absl::InfiniteDuration()});
  std::vector<int> taken;
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  ASSERT_TRUE(queue.Submit(Make(1, 1)).ok());
  std::thread instance([&] { taken = Ids(queue.Take()); });
  clock_.WaitForWaiters(1, absl::InfiniteFuture());
  queue.Close();
  instance.join();
  EXPECT_THAT(taken, ElementsAre(0));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(1));
  EXPECT_THAT(Ids(queue.Take()), IsEmpty());
  EXPECT_THAT(Ids(queue.Take()), IsEmpty());
  queue.Close();  // closing twice is harmless
}

TEST_F(BatchQueueTest, FailAllFailsWhatWaitsAndLeavesTheQueueOpen) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  ASSERT_TRUE(queue.Submit(Make(1, 1)).ok());
  queue.FailAll(absl::UnavailableError("drained too long"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fates_[i].failures, 1);
    EXPECT_EQ(fates_[i].status, absl::UnavailableError("drained too long"));
  }
  EXPECT_EQ(queue.counts().jobs, 0);
  EXPECT_EQ(queue.counts().tokens, 0);
  ASSERT_TRUE(queue.Submit(Make(1)).ok());
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(2));
}

TEST_F(BatchQueueTest, DestructionFailsWhatWaits) {
  {
    BatchQueue queue(clock_, QueueLimits(), BatchLimits());
    ASSERT_TRUE(queue.Submit(Make(1)).ok());
  }
  EXPECT_EQ(fates_[0].failures, 1);
  EXPECT_EQ(fates_[0].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(fates_[0].destroyed);
}

}  // namespace batch_queue_test
}  // namespace attendant::server
