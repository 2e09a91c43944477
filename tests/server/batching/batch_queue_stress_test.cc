// Stress of the queue by real threads in real time. It is made for ThreadSanitizer, but its
// expectations hold without it too.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "server/batching/batch_queue.h"
#include "server/batching/instance_pool.h"
#include "tests/server/batching/test_job.h"

namespace attendant::server {
namespace batch_queue_stress_test {

void MarkRuns(const Batch& batch) {
  for (TestJob* job : JobsOf(batch)) {
    EXPECT_EQ(job->key, batch.entries.front().job->key);
    ++job->fate.runs;
  }
}

enum class End { kDrain, kFailAll, kFailAllAndGoOn };

class StressTest : public testing::TestWithParam<std::tuple<int, int, End>> {
 protected:
  static constexpr int kJobsPerProducer = 2000;
  static constexpr int64_t kMostJobs = 16, kMostTokens = 40;

  // Submits jobs and cancels some of its earlier ones.
  void Produce(int producer) {
    std::mt19937 random(static_cast<unsigned>(producer));
    const int first = producer * kJobsPerProducer;
    for (int i = 0; i < kJobsPerProducer; ++i) {
      const int id = first + i;
      const auto job =
          std::make_shared<TestJob>(fates_[id], id, static_cast<int64_t>(random() % kMostTokens),
                                    static_cast<int>(random() % 3));
      job->peer = std::string(1, static_cast<char>('a' + random() % 4));
      if (random() % 4 == 0) {
        job->deadline = RealClock().Now() + absl::Microseconds(random() % 200);
      }
      accepted_[id] = queue_.Submit(job).ok();
      if (random() % 8 == 0) {
        fates_[first + static_cast<int>(random() % static_cast<unsigned>(i + 1))].cancelled = true;
        if (random() % 2 == 0) queue_.FailExpired();
      }
    }
  }

  void Watch() {
    while (!done_) {
      const QueueCounts counts = queue_.counts();
      EXPECT_LE(counts.jobs, kMostJobs);
      EXPECT_LE(counts.tokens, kMostJobs * kMostTokens);  // max_tokens bounds turns, not the sum
      std::this_thread::yield();
    }
  }

  std::vector<Fate> fates_{3 * kJobsPerProducer};
  std::vector<char> accepted_ = std::vector<char>(3 * kJobsPerProducer);
  std::atomic<bool> done_{false};
  BatchQueue queue_{
      RealClock(), {.max_jobs = kMostJobs, .max_tokens = 400}, {.max_batch_tokens = 64}};
};

TEST_P(StressTest, EveryAcceptedJobEndsExactlyOnce) {
  const auto [producer_count, instances, end] = GetParam();
  std::thread watcher([this] { Watch(); });
  {
    InstancePool pool(queue_, instances, [](int) { return MarkRuns; });
    std::vector<std::thread> producers;
    for (int i = 0; i < producer_count; ++i) producers.emplace_back([this, i] { Produce(i); });
    if (end == End::kFailAll) queue_.Close();  // while the traffic goes on
    if (end != End::kDrain) queue_.FailAll(absl::UnavailableError("drained too long"));
    for (std::thread& producer : producers) producer.join();
    queue_.Close();
  }
  done_ = true;
  watcher.join();
  for (size_t id = 0; id < fates_.size(); ++id) {
    EXPECT_EQ(fates_[id].runs + fates_[id].failures, accepted_[id] ? 1 : 0) << "job " << id;
  }
  EXPECT_EQ(queue_.counts().jobs, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, StressTest,
                         testing::Combine(testing::Values(1, 3), testing::Values(1, 2, 3),
                                          testing::Values(End::kDrain, End::kFailAll,
                                                          End::kFailAllAndGoOn)));

}  // namespace batch_queue_stress_test
}  // namespace attendant::server
