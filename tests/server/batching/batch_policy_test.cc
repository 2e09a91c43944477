#include "server/batching/batch_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace attendant::server {
namespace batch_policy_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch();
const char kModels[2] = {};

absl::Time At(int milliseconds) { return kStart + absl::Milliseconds(milliseconds); }

// A job to queue: its slices live here.
struct Job {
  int model = 0;
  std::vector<JobSlice> slices;
  absl::Time enqueued = At(0);
  size_t peer = 0;
  absl::Time deadline = absl::InfiniteFuture();
  double overhead = 0;
  double ahead = 0;
  double taken = 0;
};

// One slice of unknown duration.
Job Queued(int64_t tokens, int model = 0, int enqueued_ms = 0) {
  return {.model = model, .slices = {{1, tokens, 0}}, .enqueued = At(enqueued_ms)};
}

std::vector<QueuedJob> Views(const std::vector<Job>& jobs) {
  std::vector<QueuedJob> views;
  for (const Job& job : jobs) {
    views.push_back({.key = {.model = &kModels[job.model]},
                     .peer = job.peer,
                     .enqueued = job.enqueued,
                     .deadline = job.deadline,
                     .slices = job.slices,
                     .ahead = job.ahead,
                     .taken = job.taken,
                     .overhead = job.overhead});
  }
  return views;
}

BatchChoice Choose(const std::vector<Job>& jobs, absl::Time now, const BatchLimits& limits,
                   const std::vector<double>& served = std::vector<double>(8)) {
  return ChooseBatch(Views(jobs), served, now, limits);
}

// The jobs that a choice takes, each as often as it takes slices of it.
std::vector<size_t> Taken(const BatchChoice& choice) {
  std::vector<size_t> jobs;
  for (size_t i = 0; i < choice.take.size(); ++i) jobs.insert(jobs.end(), choice.take[i], i);
  return jobs;
}

struct Case {
  std::string name;
  std::vector<Job> queue;
  std::vector<size_t> take;
};

class WithoutDelay : public testing::TestWithParam<Case> {};

TEST_P(WithoutDelay, TakesAtOnce) {
  const BatchLimits limits{.max_batch_tokens = 100};
  EXPECT_EQ(Taken(Choose(GetParam().queue, At(0), limits)), GetParam().take);
}

INSTANTIATE_TEST_SUITE_P(
    BatchPolicy, WithoutDelay,
    ::testing::ValuesIn(std::vector<Case>{
        Case{"Nothing", {}, {}}, Case{"OneSmall", {Queued(1)}, {0}},
        Case{"ExactlyFull", {Queued(60), Queued(40)}, {0, 1}},
        Case{"OneTokenTooMany", {Queued(60), Queued(41)}, {0}},
        Case{"SkipsWhatDoesNotFit", {Queued(60), Queued(50), Queued(30)}, {0, 2}},
        Case{"LargerThanABatchRunsAlone", {Queued(101), Queued(1), Queued(0)}, {0}},
        Case{"LargerThanABatchDoesNotJoin", {Queued(1), Queued(101), Queued(2)}, {0, 2}},
        Case{"NoTokensAtAll", {Queued(0), Queued(0)}, {0, 1}},
        Case{"NoTokensJoinAFullBatch", {Queued(100), Queued(0), Queued(1)}, {0, 1}},
        Case{"OtherKeysDoNotJoin", {Queued(10, 0), Queued(10, 1), Queued(10, 0)}, {0, 2}},
        Case{"TheOldestLeadsWhateverItsSize", {Queued(1, 1), Queued(50), Queued(50)}, {0}}}),
    [](const testing::TestParamInfo<Case>& tested) { return tested.param.name; });

TEST(BatchPolicyTest, EveryFieldOfTheKeySeparates) {
  const std::vector<Job> jobs(5, Queued(1));
  std::vector<QueuedJob> queue = Views(jobs);
  queue[1].key.model = &kModels[1];
  queue[2].key.operation = 1;
  queue[3].key.first_layer = 1;
  queue[4].key.layers = 1;
  const double served = 0;
  EXPECT_THAT(Taken(ChooseBatch(queue, {&served, 1}, At(0), BatchLimits())), ElementsAre(0));
}

TEST(BatchPolicyTest, TokensNearTheLimitOfTheirTypeDoNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Taken(Choose({Queued(kMost), Queued(kMost)}, At(0), BatchLimits())), ElementsAre(0));
  EXPECT_THAT(Taken(Choose({Queued(1), Queued(kMost)}, At(0), {.max_batch_tokens = kMost})),
              ElementsAre(0));
}

class WithDelay : public testing::Test {
 protected:
  const BatchLimits limits_{.max_batch_tokens = 100, .max_queue_delay = absl::Milliseconds(10)};
};

TEST_F(WithDelay, NothingQueuedWaitsForEver) {
  const BatchChoice choice = Choose({}, At(0), limits_);
  EXPECT_THAT(Taken(choice), IsEmpty());
  EXPECT_EQ(choice.wait_until, absl::InfiniteFuture());
}

TEST_F(WithDelay, AnUnderFullBatchWaitsForItsLeadersDelay) {
  const std::vector<Job> queue = {Queued(10, 0, 0), Queued(10, 0, 5)};
  const BatchChoice early = Choose(queue, At(9), limits_);
  EXPECT_THAT(Taken(early), IsEmpty());
  EXPECT_EQ(early.wait_until, At(10));
  EXPECT_THAT(Taken(Choose(queue, At(10), limits_)), ElementsAre(0, 1));
}

TEST_F(WithDelay, AFullBatchDoesNotWait) {
  EXPECT_THAT(Taken(Choose({Queued(60), Queued(40)}, At(0), limits_)), ElementsAre(0, 1));
  EXPECT_THAT(Taken(Choose({Queued(200)}, At(0), limits_)), ElementsAre(0));
}

TEST_F(WithDelay, ABatchThatHadToSkipIsFull) {
  EXPECT_THAT(Taken(Choose({Queued(60), Queued(41)}, At(0), limits_)), ElementsAre(0));
}

TEST_F(WithDelay, AnotherKeyDoesNotFillTheBatch) {
  EXPECT_THAT(Taken(Choose({Queued(60, 0), Queued(60, 1)}, At(0), limits_)), IsEmpty());
}

TEST_F(WithDelay, ANearDeadlineOfAnyMemberCutsTheWait) {
  std::vector<Job> queue = {Queued(10, 0, 0), Queued(10, 0, 2)};
  queue[1].deadline = At(8);
  EXPECT_EQ(Choose(queue, At(4), limits_).wait_until, At(5));
  EXPECT_THAT(Taken(Choose(queue, At(5), limits_)), ElementsAre(0, 1));
}

TEST_F(WithDelay, AnEndlessDelayIsLegal) {
  const BatchLimits endless{.max_queue_delay = absl::InfiniteDuration()};
  const BatchChoice choice = Choose({Queued(1)}, At(1000), endless);
  EXPECT_THAT(Taken(choice), IsEmpty());
  EXPECT_EQ(choice.wait_until, absl::InfiniteFuture());
}

TEST_F(WithDelay, AnotherJobDoesNotWaitLongerThanItsDelayBehindALeaderThatMay) {
  std::vector<Job> queue = {Queued(10, 1, 0), Queued(10, 0, 5)};
  queue[1].peer = 1;
  EXPECT_THAT(Taken(Choose(queue, At(9), limits_, {7, 0})), IsEmpty());
  EXPECT_EQ(Choose(queue, At(9), limits_, {7, 0}).wait_until, At(10));
  EXPECT_THAT(Taken(Choose(queue, At(10), limits_, {7, 0})), ElementsAre(0));
}

// Jobs of which each sequence is a slice.
Job Sliced(size_t slices, double seconds, size_t peer = 0) {
  return {.slices = std::vector<JobSlice>(slices, {1, 10, seconds}), .peer = peer};
}

const BatchLimits kSeconds = {.max_batch_seconds = absl::Milliseconds(25)};

TEST(BatchPolicyTest, ThePeerThatWasServedLeastLeads) {
  std::vector<Job> queue = {Sliced(1, 0.02, 0), Sliced(1, 0.02, 1), Sliced(1, 0.02, 2)};
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds, {3, 1, 2})), ElementsAre(1));
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds, {3, 4, 2})), ElementsAre(2));
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds, {1, 1, 1})), ElementsAre(0));
}

TEST(BatchPolicyTest, PeersTakeTurnsInsideABatch) {
  const std::vector<Job> queue = {Sliced(9, 0.004, 0), Sliced(9, 0.004, 1)};
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds, {0, 0})), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds, {0, 0.009})), ElementsAre(0, 0, 0, 0, 1, 1));
}

TEST(BatchPolicyTest, TheEarliestDeadlineOfAPeerGoesFirst) {
  std::vector<Job> queue = {Sliced(1, 0.02), Sliced(1, 0.02), Sliced(1, 0.02)};
  for (Job& job : queue) job.ahead = 1;
  queue[0].deadline = At(90);
  queue[1].deadline = At(70);
  queue[2].deadline = At(80);
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds)), ElementsAre(1));
}

TEST(BatchPolicyTest, SmallJobsAreDueBeforeLargeOnesWithDistantDeadlines) {
  std::vector<Job> queue = {Sliced(400, 0.02), Sliced(1, 0.002)};
  for (Job& job : queue) {
    job.deadline = At(500);
    job.ahead = 1;
  }
  queue[1].enqueued = At(100);
  EXPECT_EQ(DueTime(Views(queue)[0], 0.05), At(400));
  EXPECT_EQ(DueTime(Views(queue)[0], 0.07), At(500));  // not after the deadline
  EXPECT_EQ(DueTime(Views(queue)[1], 0.002), At(116));
  EXPECT_THAT(Taken(Choose(queue, At(200), kSeconds)), ElementsAre(0, 1));
  EXPECT_EQ(Choose(queue, At(200), kSeconds).leader, 1u);
}

TEST(BatchPolicyTest, TheRestOfALargeJobIsDueAfterWhatItWasServed) {
  Job job = Sliced(4, 0.001);
  job.taken = 0.002;
  job.ahead = 1;
  EXPECT_EQ(DueTime(Views({job})[0], 0.001), At(24));
  job.deadline = At(20);
  EXPECT_EQ(DueTime(Views({job})[0], 0.001), At(20));
}

TEST(BatchPolicyTest, ALargeJobIsDueAfterTwiceTheTimeInOrderOfArrival) {
  Job job = Sliced(4, 0.02);
  job.enqueued = At(100);
  EXPECT_EQ(DueTime(Views({job})[0], 0.02), At(140));  // it came to an empty queue
  job.ahead = 0.03;
  EXPECT_EQ(DueTime(Views({job})[0], 0.02), At(200));
  std::vector<Job> queue = {job, Sliced(1, 0.005)};
  queue[1].ahead = 0.1;
  queue[1].enqueued = At(159);
  EXPECT_EQ(Choose(queue, At(159), kSeconds).leader, 1u);
  queue[1].enqueued = At(161);  // the large one has waited long enough
  EXPECT_EQ(Choose(queue, At(161), kSeconds).leader, 0u);
}

TEST(BatchPolicyTest, ALargeJobIsServedAlthoughSmallOnesKeepComing) {
  std::vector<Job> queue(21, Sliced(1, 0.001));
  queue[0] = Sliced(1, 0.03);
  for (Job& job : queue) job.ahead = 0.05;
  absl::Time now = At(0);
  while (true) {
    const BatchChoice choice = Choose(queue, now, kSeconds);
    if (choice.leader == 0) break;
    ASSERT_LT(now, At(160 + 25));  // it is due after twice 80 ms; one batch may have begun before
    now += absl::Seconds(choice.seconds);
    for (const size_t job : Taken(choice)) queue[job].enqueued = now;
  }
  EXPECT_GT(now, At(25));  // small ones passed it
}

TEST(BatchPolicyTest, ABatchClosesByPredictedSeconds) {
  const BatchChoice choice = Choose({Sliced(9, 0.01)}, At(0), kSeconds);
  EXPECT_THAT(Taken(choice), ElementsAre(0, 0));
  EXPECT_EQ(choice.close, BatchClose::kSeconds);
  EXPECT_NEAR(choice.seconds, 0.02, 1e-9);
}

TEST(BatchPolicyTest, ASliceThatIsLongerThanABatchRunsAlone) {
  const BatchChoice choice = Choose({Sliced(2, 0.2)}, At(0), kSeconds);
  EXPECT_THAT(Taken(choice), ElementsAre(0));
  EXPECT_EQ(choice.close, BatchClose::kSeconds);
}

TEST(BatchPolicyTest, BatchesAreLongerWhereTheyTakeMuchWhateverIsInThem) {
  Job job = Sliced(20, 0.01);
  job.overhead = 0.01;
  const BatchChoice choice = Choose({job}, At(0), kSeconds);
  EXPECT_THAT(choice.take, ElementsAre(8));
  EXPECT_NEAR(choice.seconds, 0.09, 1e-9);
}

TEST(BatchPolicyTest, CompanyMakesNoMemberLate) {
  std::vector<Job> queue = {Sliced(1, 0.01), Sliced(1, 0.01)};
  queue[0].deadline = At(15);
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds)), ElementsAre(0));
  EXPECT_EQ(Choose(queue, At(0), kSeconds).close, BatchClose::kDeadline);
  queue[0].deadline = At(21);
  EXPECT_THAT(Taken(Choose(queue, At(0), kSeconds)), ElementsAre(0, 1));
  EXPECT_EQ(Choose(queue, At(0), kSeconds).close, BatchClose::kQueueEmpty);
}

TEST(BatchPolicyTest, TellsThatTokensClosedABatch) {
  const BatchLimits limits{.max_batch_tokens = 100};
  EXPECT_EQ(Choose({Queued(100)}, At(0), limits).close, BatchClose::kTokens);
  EXPECT_EQ(Choose({Queued(60), Queued(41)}, At(0), limits).close, BatchClose::kTokens);
  EXPECT_EQ(Choose({Queued(60)}, At(0), limits).close, BatchClose::kQueueEmpty);
}

}  // namespace batch_policy_test
}  // namespace attendant::server
