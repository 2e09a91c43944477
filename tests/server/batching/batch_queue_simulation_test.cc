// Random traffic over virtual time, compared with a naive model: no job is lost or handed out
// twice, limits are never exceeded, order within a key is first in, first out, and nothing is
// computed that has expired or was cancelled.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "server/batching/batch_queue.h"
#include "tests/server/batching/test_job.h"

namespace attendant::server {
namespace {

// Waiting on this clock runs the simulated world, on the waiting thread, until something has
// happened.
class VirtualClock final : public Clock {
 public:
  absl::Time Now() const override { return now; }
  void AwaitUntil(absl::CondVar&, absl::Mutex& mutex,
                  absl::Time deadline) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex.Unlock();
    wait(deadline);
    mutex.Lock();
  }

  absl::Time now = absl::UnixEpoch();
  std::function<void(absl::Time)> wait;
};

struct Traffic {
  QueueLimits queue;
  BatchLimits batch;
  int keys = 3;
};

class Simulation {
 public:
  static constexpr int kEvents = 5000;

  Simulation(const Traffic& traffic, unsigned seed)
      : traffic_(traffic),
        random_(seed),
        fates_(kEvents),
        queue_(clock_, traffic.queue, traffic.batch) {
    clock_.wait = [this](absl::Time deadline) { Wait(deadline); };
  }

  void Run() {
    while (!testing::Test::HasFailure()) {
      const std::vector<std::unique_ptr<Job>> batch = queue_.Take();
      if (batch.empty()) break;
      CheckBatch(batch);
      Compute();
    }
    EXPECT_EQ(events_, kEvents);
    EXPECT_TRUE(waiting_.empty());
    for (int id = 0; id < submitted_; ++id) {
      EXPECT_EQ(fates_[id].runs + fates_[id].failures, refused_[id] ? 0 : 1) << "job " << id;
    }
  }

  int computed() const { return computed_; }
  int expired() const { return expired_; }
  int refused() const { return static_cast<int>(std::count(refused_.begin(), refused_.end(), 1)); }

 private:
  struct Waiting {
    int id;
    BatchKey key;
    int64_t tokens;
    absl::Time enqueued;
    absl::Time deadline;
  };

  int Draw(int least, int most) { return std::uniform_int_distribution<>(least, most)(random_); }

  bool Dead(const Waiting& job) const {
    return fates_[job.id].cancelled || job.deadline <= clock_.now;
  }

  bool Fits(int64_t tokens) const {
    for (const Waiting& job : waiting_) tokens += job.tokens;
    return static_cast<int64_t>(waiting_.size()) < traffic_.queue.max_jobs &&
           tokens <= traffic_.queue.max_tokens;
  }

  void BuryTheDead() {
    std::deque<Waiting> alive;
    for (const Waiting& job : waiting_) {
      if (!Dead(job)) {
        alive.push_back(job);
        continue;
      }
      ++expired_;
      EXPECT_EQ(fates_[job.id].failures, 1) << "job " << job.id;
      EXPECT_EQ(fates_[job.id].status.code(), fates_[job.id].cancelled
                                                  ? absl::StatusCode::kCancelled
                                                  : absl::StatusCode::kDeadlineExceeded);
    }
    waiting_ = std::move(alive);
  }

  // The queue has found nothing to hand out: checks that this is right, and remains right for as
  // long as it says.
  void Wait(absl::Time deadline) {
    BuryTheDead();
    if (waiting_.empty()) {
      EXPECT_EQ(deadline, absl::InfiniteFuture());
    } else {
      EXPECT_GT(deadline, clock_.now);
      EXPECT_LE(deadline, waiting_.front().enqueued + traffic_.batch.max_queue_delay);
    }
    if (next_event_ <= deadline) {
      clock_.now = next_event_;
      Event();
    } else {
      clock_.now = deadline;
    }
  }

  void Compute() {
    const absl::Time done = clock_.now + absl::Microseconds(Draw(0, 4000));
    while (next_event_ <= done) {
      clock_.now = next_event_;
      Event();
    }
    clock_.now = done;
  }

  void Event() {
    ++events_;
    next_event_ += absl::Microseconds(Draw(0, 1000));
    if (events_ == kEvents) {
      closed_ = true;
      queue_.Close();
      next_event_ = absl::InfiniteFuture();
    } else if (!waiting_.empty() && Draw(0, 9) == 0) {
      fates_[waiting_[Draw(0, static_cast<int>(waiting_.size()) - 1)].id].cancelled = true;
    } else {
      Submit();
    }
    CheckCounts();
  }

  void Submit() {
    const int id = submitted_++;
    const int64_t tokens = Draw(0, 19) == 0 ? Draw(100, 200) : Draw(0, 60);
    std::unique_ptr<Job> job =
        std::make_unique<TestJob>(fates_[id], id, tokens, Draw(0, traffic_.keys - 1));
    if (Draw(0, 2) == 0) job->deadline = clock_.now + absl::Microseconds(Draw(0, 20000));
    if (Draw(0, 49) == 0) fates_[id].cancelled = true;
    const Waiting added{id, job->key, tokens, clock_.now, job->deadline};

    const absl::Status status = queue_.Submit(job);
    absl::StatusCode expected = absl::StatusCode::kOk;
    if (fates_[id].cancelled) {
      expected = absl::StatusCode::kCancelled;
    } else if (added.deadline <= clock_.now) {
      expected = absl::StatusCode::kDeadlineExceeded;
    } else {
      if (!Fits(added.tokens)) BuryTheDead();
      if (!Fits(added.tokens)) expected = absl::StatusCode::kResourceExhausted;
    }
    EXPECT_EQ(status.code(), expected) << status.message();
    refused_.push_back(!status.ok());
    if (status.ok()) waiting_.push_back(added);
  }

  void CheckCounts() const {
    QueueCounts expected;
    for (const Waiting& job : waiting_) {
      ++expected.jobs, expected.tokens += job.tokens;
    }
    const QueueCounts counts = queue_.counts();
    EXPECT_EQ(counts.jobs, expected.jobs);
    EXPECT_EQ(counts.tokens, expected.tokens);
    EXPECT_LE(counts.jobs, traffic_.queue.max_jobs);
    EXPECT_LE(counts.tokens, traffic_.queue.max_tokens);
  }

  void CheckBatch(const std::vector<std::unique_ptr<Job>>& batch) {
    BuryTheDead();
    ASSERT_FALSE(waiting_.empty());
    const Waiting leader = waiting_.front();
    std::deque<Waiting> left;
    std::vector<int> expected;
    int64_t tokens = 0;
    bool full = false, urgent = false;
    for (const Waiting& job : waiting_) {
      const bool joins =
          job.id == leader.id || tokens + job.tokens <= traffic_.batch.max_batch_tokens;
      if (job.key == leader.key && joins) {
        expected.push_back(job.id);
        tokens += job.tokens;
        urgent |= job.deadline - clock_.now <= clock_.now - job.enqueued;
        ++fates_[job.id].runs;
        ++computed_;
      } else {
        full |= job.key == leader.key;
        left.push_back(job);
      }
    }
    EXPECT_EQ(Ids(batch), expected);
    full |= tokens >= traffic_.batch.max_batch_tokens;
    const bool patient = clock_.now - leader.enqueued >= traffic_.batch.max_queue_delay;
    EXPECT_TRUE(full || urgent || patient || closed_) << "started too early";
    waiting_ = std::move(left);
    CheckCounts();
  }

  const Traffic traffic_;
  std::mt19937 random_;
  std::vector<Fate> fates_;
  VirtualClock clock_;
  BatchQueue queue_;
  std::deque<Waiting> waiting_;
  std::vector<char> refused_;
  absl::Time next_event_ = absl::UnixEpoch();
  bool closed_ = false;
  int events_ = 0, submitted_ = 0, computed_ = 0, expired_ = 0;
};

constexpr unsigned kSeeds = 5;  // times kEvents and four kinds of traffic: 100,000 events

void Simulate(const Traffic& traffic) {
  int computed = 0, expired = 0, refused = 0;
  for (unsigned seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation(traffic, seed);
    simulation.Run();
    computed += simulation.computed();
    expired += simulation.expired();
    refused += simulation.refused();
  }
  // Checks that the traffic has reached the cases that it is meant to test.
  EXPECT_GT(computed, 100);
  EXPECT_GT(expired, 100);
  EXPECT_GT(refused, 100);
}

TEST(BatchQueueSimulation, BoundByJobs) {
  Simulate({.queue = {.max_jobs = 8}, .batch = {.max_batch_tokens = 100}});
}

TEST(BatchQueueSimulation, BoundByTokens) {
  Simulate({.queue = {.max_tokens = 300}, .batch = {.max_batch_tokens = 100}});
}

TEST(BatchQueueSimulation, BoundByTokensWithManyKeys) {
  Simulate({.queue = {.max_tokens = 100}, .batch = {.max_batch_tokens = 64}, .keys = 16});
}

TEST(BatchQueueSimulation, WaitingForCompany) {
  Simulate({.queue = {.max_jobs = 32},
            .batch = {.max_batch_tokens = 150, .max_queue_delay = absl::Milliseconds(3)}});
}

}  // namespace
}  // namespace attendant::server
