// Tests of how peers, and models, share the queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "server/metrics/refusal.h"
#include "tests/server/batching/batch_queue_fixture.h"

namespace attendant::server {
namespace batch_queue_shares_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BatchQueueShareTest : public BatchQueueTest {
 protected:
  absl::Status Bring(BatchQueue& queue, const char* peer, int64_t tokens, double seconds,
                     int model = 0) {
    const std::shared_ptr<TestJob> job = Make(tokens, model);
    job->peer = peer;
    job->slices = {{1, tokens, seconds}};
    return queue.Submit(job);
  }
};

TEST_F(BatchQueueShareTest, AmongPeersEachHasNoMoreThanIsFree) {
  BatchQueue queue(clock_, {.max_jobs = 9}, BatchLimits());
  ASSERT_TRUE(Bring(queue, "b", 1, 0).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Bring(queue, "a", 1, 0).ok()) << i;
  const absl::Status status = Bring(queue, "a", 1, 0);  // it holds 5, and 3 are free
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "peer_share");
  EXPECT_EQ(status.message(), "the client already has its share of the queue's jobs; retry later");
  EXPECT_EQ(ReasonOf(queue.CheckAnother("a", absl::InfiniteFuture())), "peer_share");
  EXPECT_TRUE(Bring(queue, "b", 1, 0).ok());
  EXPECT_TRUE(Bring(queue, "c", 1, 0).ok());
  EXPECT_EQ(ReasonOf(Bring(queue, "b", 1, 0)), "peer_share");
  EXPECT_TRUE(Bring(queue, "d", 1, 0).ok());  // which gets the last one
  EXPECT_EQ(ReasonOf(Bring(queue, "e", 1, 0)), "queue_jobs");
}

TEST_F(BatchQueueShareTest, OnePeerAloneLeavesTheReserve) {
  BatchQueue queue(clock_, {.max_jobs = 4, .reserved_jobs = 2}, BatchLimits());
  ASSERT_TRUE(Bring(queue, "", 1, 0).ok());  // of nobody, so nobody's competitor
  ASSERT_TRUE(Bring(queue, "a", 1, 0).ok());
  EXPECT_EQ(ReasonOf(Bring(queue, "a", 1, 0)), "peer_share");
  EXPECT_TRUE(Bring(queue, "b", 1, 0).ok());
  EXPECT_TRUE(Bring(queue, "", 1, 0).ok());
}

TEST_F(BatchQueueShareTest, OnlySoManyPeersAreRemembered) {
  for (const auto& [others, first] : {std::pair(1000, "b"), std::pair(1100, "a")}) {
    BatchQueue queue(clock_, QueueLimits(), {.max_batch_tokens = 1});
    ASSERT_TRUE(Bring(queue, "a", 1, 100).ok());
    queue.Take();
    for (int i = 0; i < others; ++i) {
      const auto job = std::make_shared<TestJob>(fates_[0], 0, 1);
      job->peer = "other " + std::to_string(i);
      job->slices = {{1, 1, 0.001}};
      ASSERT_TRUE(queue.Submit(job).ok());
      queue.Take();
    }
    for (const char* peer : {"a", "b"}) ASSERT_TRUE(Bring(queue, peer, 1, 1).ok());
    EXPECT_EQ(JobsOf(queue.Take()).front()->peer, first) << others;
  }
}

TEST_F(BatchQueueShareTest, ItsOwnBacklogIsNoReasonToRefuseAPeer) {
  BatchQueue queue(clock_, {.max_tokens = 100, .max_seconds = absl::Seconds(10)}, BatchLimits());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Bring(queue, "a", 60, 60).ok()) << i;
  // Nor is what others have beyond a turn like its own.
  EXPECT_TRUE(Bring(queue, "b", 40, 1).ok());
  EXPECT_TRUE(Bring(queue, "a", 60, 9).ok());
  EXPECT_EQ(queue.counts().jobs, 10);
}

TEST_F(BatchQueueShareTest, TheTurnsOfOtherPeersAreBounded) {
  BatchQueue tokens(clock_, {.max_tokens = 100}, BatchLimits());
  for (const char* peer : {"a", "b", "c"}) ASSERT_TRUE(Bring(tokens, peer, 30, 0).ok());
  const absl::Status status = Bring(tokens, "d", 26, 0);  // behind 26 of each
  EXPECT_EQ(ReasonOf(status), "queue_tokens");
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("the queue is full (78 of 100 tokens, --max-queue-tokens); this request needs 26"));
  EXPECT_TRUE(Bring(tokens, "d", 25, 0).ok());

  BatchQueue seconds(clock_, {.max_seconds = absl::Seconds(10)}, {.instances = 2});
  ASSERT_TRUE(Bring(seconds, "a", 1, 100).ok());
  ASSERT_TRUE(Bring(seconds, "b", 1, 4).ok());
  EXPECT_EQ(ReasonOf(Bring(seconds, "c", 1, 8.1)), "queue_seconds");  // behind 8.1 and 4
  EXPECT_TRUE(Bring(seconds, "c", 1, 8).ok());
}

TEST_F(BatchQueueShareTest, OnlyTheFirstSliceOfAJobHasToFindRoom) {
  BatchQueue queue(clock_, {.max_seconds = absl::Seconds(10)}, BatchLimits());
  ASSERT_TRUE(Bring(queue, "a", 1, 100).ok());
  const std::shared_ptr<TestJob> job = Make(60);
  job->peer = "b";
  job->slices = {{1, 30, 5}, {1, 30, 50}};
  EXPECT_TRUE(queue.Submit(job).ok());
}

TEST_F(BatchQueueShareTest, PatientJobsAreNeverRefusedForWantOfRoom) {
  const QueueLimits limits = {.max_jobs = 2, .max_tokens = 10, .max_seconds = absl::Seconds(1)};
  BatchQueue queue(clock_, limits, BatchLimits());
  const auto bring = [&](const char* peer, int64_t tokens, absl::Time deadline) {
    const std::shared_ptr<TestJob> job = Make(tokens);
    job->peer = peer;
    job->slices = {{1, tokens, 0.9}};
    job->deadline = deadline;
    job->patient = true;
    return queue.Submit(job);
  };
  for (const char* peer : {"a", "a", "b", "c"}) {
    EXPECT_TRUE(bring(peer, 9, absl::InfiniteFuture()).ok());
  }
  EXPECT_EQ(ReasonOf(bring("d", 9, clock_.Now() + absl::Seconds(1))), "deadline_hopeless");
  EXPECT_EQ(bring("d", 11, absl::InfiniteFuture()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(Bring(queue, "d", 1, 0)), "queue_jobs");
}

TEST_F(BatchQueueShareTest, TakesMoreOfAPeerThatHasLessThanItsPart) {
  BatchQueue queue(clock_, {.max_seconds = absl::Seconds(10)}, BatchLimits());
  EXPECT_TRUE(queue.TakesMoreOf("a"));
  ASSERT_TRUE(Bring(queue, "a", 1, 9).ok());
  EXPECT_TRUE(queue.TakesMoreOf("a"));
  ASSERT_TRUE(Bring(queue, "a", 1, 2).ok());
  EXPECT_FALSE(queue.TakesMoreOf("a"));
  // Another one's part is half of the queue, and so is that of the first from then on.
  EXPECT_TRUE(queue.TakesMoreOf("b"));
  ASSERT_TRUE(Bring(queue, "b", 1, 4.9).ok());
  EXPECT_TRUE(queue.TakesMoreOf("b"));
  ASSERT_TRUE(Bring(queue, "b", 1, 0.2).ok());
  EXPECT_FALSE(queue.TakesMoreOf("b"));

  BatchQueue tokens(clock_, {.max_tokens = 5}, BatchLimits());
  ASSERT_TRUE(Bring(tokens, "a", 5, 0).ok());
  EXPECT_FALSE(tokens.TakesMoreOf("a"));
  BatchQueue jobs(clock_, {.max_jobs = 3, .reserved_jobs = 1}, BatchLimits());
  ASSERT_TRUE(Bring(jobs, "a", 1, 0).ok());
  EXPECT_TRUE(jobs.TakesMoreOf("a"));
  ASSERT_TRUE(Bring(jobs, "a", 1, 0).ok());
  EXPECT_FALSE(jobs.TakesMoreOf("a"));
}

TEST_F(BatchQueueShareTest, AmongModelsEachHasNoMoreThanIsFree) {
  BatchQueue queue(clock_, {.max_jobs = 6, .reserved_jobs = 1}, BatchLimits());
  const std::array peers = {"a", "b", "c", "d", "e"};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Bring(queue, peers[i], 1, 0, /*model=*/0).ok());
  ASSERT_TRUE(Bring(queue, "", 1, 0, /*model=*/1).ok());
  const absl::Status status = Bring(queue, "e", 1, 0, /*model=*/0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "queue_jobs");
  EXPECT_EQ(status.message(), "the model already has its share of the queue's jobs; retry later");
  EXPECT_TRUE(Bring(queue, "e", 1, 0, /*model=*/1).ok());
}

TEST_F(BatchQueueShareTest, APeerThatComesLaterIsServedAtOnce) {
  BatchQueue queue(clock_, QueueLimits(), BatchLimits());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Bring(queue, "a", 1, 0.1).ok());
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(0));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(1));
  ASSERT_TRUE(Bring(queue, "b", 1, 0.1).ok());
  ASSERT_TRUE(Bring(queue, "b", 1, 0.1).ok());
  // It has saved up nothing for the time before: they take turns.
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(4));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(2));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(5));
  EXPECT_THAT(Ids(queue.Take()), ElementsAre(3));
}

}  // namespace batch_queue_shares_test
}  // namespace attendant::server
