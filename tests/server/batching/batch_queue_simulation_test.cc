// Random traffic of several peers through a queue and several instances, over virtual time: a
// million requests, or as many as ATTENDANT_SIMULATED_REQUESTS says. A simple account of what waits
// checks that no request is lost or served twice, no bound and no share is passed, nothing is
// computed for which nobody waits, and no peer starves. What fails names its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "server/batching/batch_queue.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace batch_queue_simulation_test {

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

constexpr int kPeers = 5;

struct Traffic {
  QueueLimits queue;
  BatchLimits batch;
  int keys = 1;
  double load = 1.5;  // of all instances
  double overhead = 0;
  bool with_deadlines = true;
};

struct SimulatedJob final : Job {
  void Fail(const absl::Status& status) override { (*on_failure)(*this, status); }

  int peer_index = 0;
  size_t slices_left = 0;
  int64_t next_sequence = 0;  // all before have been handed out
  double seconds_left = 0;
  int64_t tokens_left = 0;
  bool ended = false;  // failed, or handed out completely
  std::atomic<bool> gone{false};
  std::function<void(SimulatedJob&, const absl::Status&)>* on_failure = nullptr;
};

class Simulation {
 public:
  struct Outcome {
    int64_t computed = 0, cancelled = 0, expired = 0, hopeless = 0, refused = 0, partly = 0;
    int64_t peer_shares = 0, model_shares = 0;  // of those refused
  };

  Simulation(const Traffic& traffic, unsigned seed, int64_t requests)
      : traffic_(traffic), random_(seed), requests_(requests) {
    clock_.wait = [this](absl::Time deadline) { Wait(deadline); };
    failed_ = [this](SimulatedJob& job, const absl::Status& status) { OnFailure(job, status); };
  }

  Outcome Run() {
    const int instances = traffic_.batch.instances;
    while (!testing::Test::HasFailure()) {
      if (static_cast<int>(running_.size()) == instances) {
        Advance(*running_.begin());
        continue;
      }
      const Batch batch = queue_.Take();
      if (batch.entries.empty()) break;
      Start(batch);
    }
    EXPECT_EQ(submitted_, requests_);
    EXPECT_TRUE(waiting_.empty());
    EXPECT_EQ(accepted_,
              outcome_.computed + outcome_.cancelled + outcome_.expired + late_hopeless_);
    CheckCounts();
    return outcome_;
  }

 private:
  int Draw(int least, int most) { return std::uniform_int_distribution<>(least, most)(random_); }

  // The queue has found nothing to hand out.
  void Wait(absl::Time deadline) {
    if (traffic_.batch.max_queue_delay == absl::ZeroDuration()) {
      EXPECT_TRUE(waiting_.empty()) << "an idle instance does not take what waits";
    }
    EXPECT_GT(deadline, clock_.now);
    Advance(std::min({next_arrival_, deadline, NextEnd()}));
  }

  absl::Time NextEnd() const {
    return running_.empty() ? absl::InfiniteFuture() : *running_.begin();
  }

  // Lets the world go on until `until`, or until the next arrival if that comes first.
  void Advance(absl::Time until) {
    if (next_arrival_ <= until) {
      clock_.now = next_arrival_;
      Arrive();
    } else {
      clock_.now = until;
    }
    while (NextEnd() <= clock_.now) running_.erase(running_.begin());
  }

  void Arrive() {
    if (submitted_ == requests_) {
      queue_.Close();
      next_arrival_ = absl::InfiniteFuture();
      return;
    }
    // Bursts, and pauses after some of them in which the queue runs empty.
    if (Draw(0, 2) == 0) {
      const double mean = 3 * kMeanSeconds / traffic_.load / traffic_.batch.instances;
      next_arrival_ += absl::Seconds(std::exponential_distribution<>(1 / mean)(random_));
    }
    if (Draw(0, 499) == 0) next_arrival_ += absl::Milliseconds(Draw(0, 400));
    if (Draw(0, 9) == 0 && !waiting_.empty()) {
      CancelOne();
    } else {
      Submit();
    }
    CheckCounts();
  }

  void CancelOne() {
    auto job = waiting_.begin();
    std::advance(job, Draw(0, std::min(4, static_cast<int>(waiting_.size()) - 1)));
    const std::shared_ptr<SimulatedJob> cancelled = job->second;
    cancelled->gone = true;
    if (Draw(0, 1) == 0) return;
    queue_.FailExpired();
    EXPECT_TRUE(cancelled->ended) << "its room is free at once";
  }

  static constexpr double kMeanSeconds = 0.008;  // of a request, about

  std::shared_ptr<SimulatedJob> Make() {
    static const char models[16] = {};
    auto job = std::make_shared<SimulatedJob>();
    job->key.model = &models[Draw(0, traffic_.keys - 1)];
    // The first peer sends most of all, and the last has no name.
    job->peer_index = Draw(0, 1) == 0 ? 0 : Draw(0, kPeers - 1);
    if (job->peer_index < kPeers - 1) {
      job->peer = std::string(1, static_cast<char>('a' + job->peer_index));
    }
    const int slices = Draw(0, 19) == 0 ? Draw(2, 12) : 1;
    for (int i = 0; i < slices; ++i) {
      const int tokens = Draw(0, 99) == 0 ? Draw(100, 200) : Draw(0, 60);
      job->slices.push_back({Draw(1, 3), tokens, 0.0001 * tokens + 0.0001 * Draw(1, 20)});
      job->tokens += tokens;
      job->seconds_left += job->slices.back().seconds;
    }
    job->slices_left = job->slices.size();
    job->tokens_left = job->tokens;
    job->overhead = traffic_.overhead;
    job->cancelled = {std::shared_ptr<void>(), &job->gone};
    job->on_failure = &failed_;
    job->gone = Draw(0, 99) == 0;
    if (traffic_.with_deadlines && Draw(0, 2) > 0) {
      job->deadline =
          clock_.now + absl::Microseconds(Draw(0, 3) == 0 ? Draw(0, 20000) : Draw(0, 400000));
    }
    return job;
  }

  void Submit() {
    ++submitted_;
    const std::shared_ptr<SimulatedJob> job = Make();
    submitting_ = job.get();
    const absl::Time deadline = job->deadline;
    const absl::Status status = queue_.Submit(job);
    submitting_ = nullptr;
    if (job->gone) {
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
    } else if (deadline <= clock_.now) {
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    } else if (absl::IsDeadlineExceeded(status)) {
      EXPECT_EQ(ReasonOf(status), "deadline_hopeless");
      EXPECT_LT(deadline, clock_.now + AtMost(*job)) << status;
      ++outcome_.hopeless;
    } else if (job->tokens > traffic_.queue.max_tokens) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      ++outcome_.refused;
    } else if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_FALSE(HasRoom(*job, -kRounding) && IsInShares(*job)) << status;
      ++outcome_.refused;
      if (ReasonOf(status) == "peer_share") {
        EXPECT_FALSE(job->peer.empty());
        ++outcome_.peer_shares;
      }
      if (absl::StrContains(status.message(), "the model already has its share"))
        ++outcome_.model_shares;
    }
    if (!status.ok()) return;
    EXPECT_TRUE(HasRoom(*job, kRounding));
    EXPECT_TRUE(IsInShares(*job));
    ++accepted_;
    Count(+1, job->tokens, job->seconds_left);
    ++peers_[job->peer_index].jobs;
    waiting_.emplace(next_id_++, job);
    if (peers_[job->peer_index].jobs == 1) BeginBacklog(job->peer_index);
  }

  // The longest that a job can take behind everything else.
  absl::Duration AtMost(const SimulatedJob& job) const {
    double running = 0;
    for (const absl::Time end : predicted_ends_) {
      running += std::max(0.0, absl::ToDoubleSeconds(end - clock_.now));
    }
    const double wait = 1.25 * (running + counts_.seconds);  // with the queue's margin
    return absl::Seconds(wait + job.seconds_left + job.overhead) + absl::Nanoseconds(10);
  }

  static constexpr double kRounding = 1e-9;  // of sums of seconds

  // `spare` seconds more may wait.
  bool HasRoom(const SimulatedJob& job, double spare) const {
    const JobSlice& first = job.slices.front();
    bool alone = true;
    int64_t tokens = first.tokens;
    double seconds = first.seconds;
    for (int peer = 0; peer < kPeers; ++peer) {
      if (peer == job.peer_index || peers_[peer].jobs == 0) continue;
      const QueueCounts held =
          Waiting([&](const SimulatedJob& other) { return other.peer_index == peer; });
      alone = false;
      tokens += std::min(held.tokens, first.tokens);
      seconds += std::min(held.seconds, first.seconds);
    }
    const double bound = absl::ToDoubleSeconds(traffic_.queue.max_seconds);
    return counts_.jobs < traffic_.queue.max_jobs && job.tokens <= traffic_.queue.max_tokens &&
           (alone || (tokens <= traffic_.queue.max_tokens &&
                      seconds / traffic_.batch.instances <= bound + spare));
  }

  // What waits of the jobs for which `is_of` returns true.
  template <typename IsOf>
  QueueCounts Waiting(IsOf is_of) const {
    QueueCounts counts;
    for (const auto& [id, job] : waiting_) {
      if (!is_of(*job)) continue;
      ++counts.jobs;
      counts.tokens += job->tokens_left;
      counts.seconds += job->seconds_left;
    }
    return counts;
  }

  bool IsInShares(const SimulatedJob& job) const {
    const int64_t free = traffic_.queue.max_jobs - counts_.jobs;
    const auto no_more_than_free = [&](const QueueCounts& held) { return held.jobs <= free; };
    const auto of_peer = [&](const SimulatedJob& other) { return other.peer == job.peer; };
    const auto of_rival = [&](const SimulatedJob& other) {
      return !other.peer.empty() && other.peer != job.peer;
    };
    const auto of_model = [&](const SimulatedJob& other) {
      return other.key.model == job.key.model;
    };
    if (counts_.jobs > Waiting(of_model).jobs && !no_more_than_free(Waiting(of_model))) {
      return false;
    }
    if (job.peer.empty() || Waiting(of_peer).jobs == 0) return true;
    if (Waiting(of_rival).jobs > 0) return no_more_than_free(Waiting(of_peer));
    return free > traffic_.queue.reserved_jobs;
  }

  void Count(int jobs, int64_t tokens, double seconds) {
    counts_.jobs += jobs;
    counts_.tokens += tokens;
    counts_.seconds += seconds;
  }

  void OnFailure(SimulatedJob& job, const absl::Status& status) {
    if (testing::Test::HasFailure()) return;  // the queue is destroyed with what waits
    ASSERT_NE(&job, submitting_) << "the caller of Submit answers it";
    ASSERT_FALSE(job.ended) << "failed after its end";
    if (absl::IsCancelled(status)) {
      EXPECT_TRUE(job.gone);
      ++outcome_.cancelled;
    } else if (ReasonOf(status) == "deadline_hopeless") {
      EXPECT_LT(job.deadline, clock_.now + absl::Seconds(job.overhead + job.seconds_left));
      ++late_hopeless_;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_LE(job.deadline, clock_.now);
      ++outcome_.expired;
    }
    if (job.slices_left < job.slices.size()) ++outcome_.partly;
    Leave(job);
  }

  // The job, with everything of it that still waits.
  void Leave(SimulatedJob& job) {
    job.ended = true;
    Count(-1, -job.tokens_left, -job.seconds_left);
    --peers_[job.peer_index].jobs;
    const auto entry = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const auto& each) { return each.second.get() == &job; });
    ASSERT_NE(entry, waiting_.end());
    waiting_.erase(entry);
  }

  void CheckCounts() {
    const QueueCounts counts = queue_.counts();
    EXPECT_EQ(counts.jobs, counts_.jobs);
    EXPECT_EQ(counts.tokens, counts_.tokens);
    EXPECT_NEAR(counts.seconds, counts_.seconds, 1e-6);
    EXPECT_LE(counts.jobs, traffic_.queue.max_jobs);
  }

  void Start(const Batch& batch) {
    double seconds = 0;
    int64_t tokens = 0;
    size_t slices = 0;
    absl::Time deadline = absl::InfiniteFuture();
    for (const BatchEntry& entry : batch.entries) {
      SimulatedJob& job = static_cast<SimulatedJob&>(*entry.job);
      EXPECT_EQ(job.key, batch.entries.front().job->key);
      EXPECT_TRUE(CheckAwaited(job, clock_.now).ok()) << "nobody waits for it";
      ASSERT_FALSE(job.ended) << "served after its end";
      ASSERT_EQ(entry.first_sequence, job.next_sequence) << "lost or served twice";
      deadline = std::min(deadline, job.deadline);
      int64_t sequences = 0;
      for (; sequences < entry.sequences; ++slices) {
        const JobSlice& slice = job.slices[job.slices.size() - job.slices_left];
        --job.slices_left;
        sequences += slice.sequences;
        tokens += slice.tokens;
        seconds += slice.seconds;
        Serve(job, slice);
      }
      EXPECT_EQ(sequences, entry.sequences) << "a part of a slice";
      job.next_sequence += sequences;
      if (job.slices_left > 0) continue;
      ++outcome_.computed;
      Leave(job);
    }
    CheckBatch(batch, slices, tokens, seconds, deadline);
    CheckFairness();
    CheckCounts();
  }

  void Serve(SimulatedJob& job, const JobSlice& slice) {
    Count(0, -slice.tokens, -slice.seconds);
    job.tokens_left -= slice.tokens;
    job.seconds_left -= slice.seconds;
    peers_[job.peer_index].served += slice.seconds;
  }

  void CheckBatch(const Batch& batch, size_t slices, int64_t tokens, double seconds,
                  absl::Time deadline) {
    const absl::Time end = clock_.now + absl::Seconds(seconds + traffic_.overhead);
    if (slices > 1) {
      EXPECT_LE(tokens, traffic_.batch.max_batch_tokens);
      EXPECT_LE(seconds, BatchSeconds(traffic_.batch, traffic_.overhead) + 1e-9);
      if (batch.entries.size() > 1) {
        EXPECT_LE(end, deadline + absl::Nanoseconds(10));
      }
    }
    const double noise = 0.01 * Draw(80, 130);
    running_.insert(clock_.now + absl::Seconds((seconds + traffic_.overhead) * noise));
    predicted_ends_[next_end_++ % predicted_ends_.size()] = end;
  }

  // While two peers always have something waiting, and all of it may be computed together, they are
  // served as much as each other, but for what batches and slices cannot be divided.
  void BeginBacklog(int peer) {
    for (int other = 0; other < kPeers; ++other) {
      lead_[peer][other] = peers_[peer].served - peers_[other].served;
      lead_[other][peer] = -lead_[peer][other];
    }
  }

  void CheckFairness() {
    if (traffic_.keys > 1) return;
    const double bound =
        3 * (BatchSeconds(traffic_.batch, traffic_.overhead) + kMostSlice + traffic_.overhead);
    for (int a = 0; a < kPeers; ++a) {
      for (int b = 0; b < a; ++b) {
        if (peers_[a].jobs == 0 || peers_[b].jobs == 0) continue;
        const double lead = peers_[a].served - peers_[b].served - lead_[a][b];
        ASSERT_LT(std::abs(lead), bound) << "between peers " << a << " and " << b;
      }
    }
  }

  static constexpr double kMostSlice = 0.022;

  struct Peer {
    int64_t jobs = 0;  // that wait
    double served = 0;
  };

  const Traffic traffic_;
  std::mt19937 random_;
  const int64_t requests_;
  VirtualClock clock_;
  std::function<void(SimulatedJob&, const absl::Status&)> failed_;
  BatchQueue queue_{clock_, traffic_.queue, traffic_.batch};
  std::map<int64_t, std::shared_ptr<SimulatedJob>> waiting_;
  QueueCounts counts_;
  std::array<Peer, kPeers> peers_;
  double lead_[kPeers][kPeers] = {};
  std::multiset<absl::Time> running_;  // the ends of batches
  std::array<absl::Time, 8> predicted_ends_ = {};
  size_t next_end_ = 0;
  absl::Time next_arrival_ = absl::UnixEpoch();
  const SimulatedJob* submitting_ = nullptr;
  int64_t next_id_ = 0;
  int64_t submitted_ = 0, accepted_ = 0, late_hopeless_ = 0;
  Outcome outcome_;
};

// A fifth of the million or of what the environment asks for.
int64_t RequestsOfATest() {
  const char* asked = std::getenv("ATTENDANT_SIMULATED_REQUESTS");
  return (asked == nullptr ? 1'000'000 : std::atoll(asked)) / 5;
}

void Simulate(const Traffic& traffic) {
  constexpr int64_t kAtOnce = 20'000;
  Simulation::Outcome sum;
  const int64_t simulations = std::max<int64_t>(1, RequestsOfATest() / kAtOnce);
  for (unsigned seed = 1; seed <= simulations && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Simulation::Outcome outcome = Simulation(traffic, seed, kAtOnce).Run();
    sum.computed += outcome.computed;
    sum.cancelled += outcome.cancelled;
    sum.hopeless += outcome.hopeless;
    sum.refused += outcome.refused;
    sum.partly += outcome.partly;
    sum.peer_shares += outcome.peer_shares;
    sum.model_shares += outcome.model_shares;
  }
  // Checks that the traffic has reached the cases that it is meant to test.
  EXPECT_GT(sum.computed, kAtOnce / 5);
  EXPECT_GT(sum.cancelled, 100);
  EXPECT_GT(sum.refused, 100);
  EXPECT_GT(sum.partly, 10);
  if (traffic.queue.max_jobs < QueueLimits().max_jobs) {
    EXPECT_GT(sum.peer_shares, 100);
    EXPECT_EQ(sum.model_shares > 100, traffic.keys > 1);
  }
  if (traffic.with_deadlines) {
    EXPECT_GT(sum.hopeless, 100);
  }
}

TEST(BatchQueueSimulation, BoundByJobs) {
  Simulate({.queue = {.max_jobs = 16, .reserved_jobs = 2}, .batch = {.max_batch_tokens = 200}});
}

TEST(BatchQueueSimulation, BoundByTokensOnThreeInstances) {
  Simulate({.queue = {.max_tokens = 200}, .batch = {.max_batch_tokens = 200, .instances = 3}});
}

TEST(BatchQueueSimulation, BoundByJobsWithTwoModels) {
  Simulate({.queue = {.max_jobs = 16},
            .batch = {.max_batch_tokens = 100, .instances = 2},
            .keys = 2,
            .overhead = 0.002});
}

TEST(BatchQueueSimulation, BoundBySecondsWithoutDeadlines) {
  Simulate({.queue = {.max_seconds = absl::Milliseconds(10)},
            .batch = {.instances = 2},
            .load = 3,
            .overhead = 0.001,
            .with_deadlines = false});
}

TEST(BatchQueueSimulation, WaitingForCompany) {
  Simulate(
      {.queue = {.max_jobs = 8},
       .batch = {
           .max_batch_tokens = 300, .max_queue_delay = absl::Milliseconds(3), .instances = 2}});
}

}  // namespace batch_queue_simulation_test
}  // namespace attendant::server
