// Tests of how peers, and models, share the queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "server/metrics/refusal.h"
#include "tests/server/batching/batch_queue_fixture.h"

namespace attendant::server {
namespace batch_queue_shares_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BatchQueueShareTest : public BatchQueueTest {
 protected:
  absl::Status Bring(TestQueue& queue, const char* peer, int64_t tokens, double seconds,
                     int model = 0) {
    TestJob job = Make(tokens, model);
    job.info().peer = peer;
    job.info().slices = {{1, tokens, seconds}};
    return Submit(queue, job);
  }
};

TEST_F(BatchQueueShareTest, AmongPeersEachHasNoMoreThanIsFree) {
  TestQueue queue(clock_, {.max_jobs = 9}, BatchLimits());
  ASSERT_TRUE(Bring(queue, "b", 1, 0).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Bring(queue, "a", 1, 0).ok()) << i;
  const absl::Status status = Bring(queue, "a", 1, 0);  // it holds 5, and 3 are free
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "peer_share");
  EXPECT_EQ(status.message(), "the caller has its share of the queue's jobs; try again later");
  EXPECT_EQ(ReasonOf(queue.CheckAnother("a", absl::InfiniteFuture())), "peer_share");
  EXPECT_TRUE(Bring(queue, "b", 1, 0).ok());
  EXPECT_TRUE(Bring(queue, "c", 1, 0).ok());
  EXPECT_EQ(ReasonOf(Bring(queue, "b", 1, 0)), "peer_share");
  EXPECT_TRUE(Bring(queue, "d", 1, 0).ok());  // which gets the last one
  EXPECT_EQ(ReasonOf(Bring(queue, "e", 1, 0)), "queue_jobs");
}

TEST_F(BatchQueueShareTest, OnePeerAloneLeavesTheReserve) {
  TestQueue queue(clock_, {.max_jobs = 4, .reserved_jobs = 2}, BatchLimits());
  ASSERT_TRUE(Bring(queue, "", 1, 0).ok());  // of nobody, so nobody's competitor
  ASSERT_TRUE(Bring(queue, "a", 1, 0).ok());
  EXPECT_EQ(ReasonOf(Bring(queue, "a", 1, 0)), "peer_share");
  EXPECT_TRUE(Bring(queue, "b", 1, 0).ok());
  EXPECT_TRUE(Bring(queue, "", 1, 0).ok());
}

TEST_F(BatchQueueShareTest, TokensAndSecondsAreSharedToo) {
  const QueueLimits limits = {.max_tokens = 100,
                              .max_seconds = absl::Seconds(10),
                              .reserved_tokens = 10,
                              .reserved_seconds = absl::Seconds(1)};
  TestQueue tokens(clock_, limits, BatchLimits());
  ASSERT_TRUE(Bring(tokens, "a", 60, 0).ok());
  EXPECT_EQ(ReasonOf(Bring(tokens, "a", 31, 0)), "peer_share");
  EXPECT_TRUE(Bring(tokens, "b", 1, 0).ok());
  const absl::Status status = Bring(tokens, "a", 1, 0);
  EXPECT_EQ(status.message(), "the caller has its share of the queue's tokens; try again later");
  EXPECT_TRUE(Bring(tokens, "b", 39, 0).ok());

  TestQueue seconds(clock_, limits, {.instances = 2});
  ASSERT_TRUE(Bring(seconds, "a", 1, 12).ok());
  EXPECT_EQ(ReasonOf(Bring(seconds, "a", 1, 6.5)), "peer_share");
  EXPECT_TRUE(Bring(seconds, "b", 1, 1).ok());
  EXPECT_THAT(std::string(Bring(seconds, "a", 1, 0.1).message()),
              HasSubstr("share of the queue's predicted seconds"));
  EXPECT_TRUE(Bring(seconds, "b", 1, 6.5).ok());
}

TEST_F(BatchQueueShareTest, WhatIsHandedOutOfAJobCountsNoMore) {
  TestQueue queue(clock_, {.max_tokens = 100}, {.max_batch_tokens = 30});
  TestJob job = Make(60);
  job.info().peer = "a";
  job.info().slices = {{1, 30, 0}, {1, 30, 0}};
  ASSERT_TRUE(Submit(queue, job).ok());
  ASSERT_TRUE(Bring(queue, "b", 1, 0).ok());
  EXPECT_EQ(ReasonOf(Bring(queue, "a", 1, 0)), "peer_share");
  queue.Take();
  EXPECT_TRUE(Bring(queue, "a", 1, 0).ok());
}

TEST_F(BatchQueueShareTest, AmongModelsEachHasNoMoreThanIsFree) {
  TestQueue queue(clock_, {.max_jobs = 6, .reserved_jobs = 1}, BatchLimits());
  const std::array peers = {"a", "b", "c", "d", "e"};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Bring(queue, peers[i], 1, 0, /*model=*/0).ok());
  ASSERT_TRUE(Bring(queue, "", 1, 0, /*model=*/1).ok());
  const absl::Status status = Bring(queue, "e", 1, 0, /*model=*/0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "queue_jobs");
  EXPECT_EQ(status.message(), "the model has its share of the queue's jobs; try again later");
  EXPECT_TRUE(Bring(queue, "e", 1, 0, /*model=*/1).ok());
}

TEST_F(BatchQueueShareTest, APeerThatComesLaterIsServedAtOnce) {
  TestQueue queue(clock_, QueueLimits(), BatchLimits());
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
