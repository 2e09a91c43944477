#include "server/batching/instance_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/server/batching/test_job.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace instance_pool_test {

// A record of what the runners of a pool have done.
class Log {
 public:
  void Add(int instance) {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    absl::MutexLock lock(&mutex_);
    made_.emplace(instance, name);
  }
  std::set<std::pair<int, std::string>> made() const {
    absl::MutexLock lock(&mutex_);
    return made_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::set<std::pair<int, std::string>> made_ ABSL_GUARDED_BY(mutex_);
};

class CountingRunner final : public BatchRunner<TestJob> {
 public:
  ~CountingRunner() override { EXPECT_EQ(std::this_thread::get_id(), home_); }
  void Run(Batch<TestJob> batch) override {
    EXPECT_EQ(std::this_thread::get_id(), home_);
    EXPECT_FALSE(batch.pieces.empty());
    for (const auto& piece : batch.pieces) piece.job.Run();
  }

 private:
  const std::thread::id home_ = std::this_thread::get_id();
};

class InstancePoolTest : public testing::Test {
 protected:
  void Submit(TestQueue& queue, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      const TestJob job(fates_.at(submitted_), submitted_, 1);
      ++submitted_;
      ASSERT_TRUE(queue.Submit(job).ok());
    }
  }
  std::function<std::unique_ptr<BatchRunner<TestJob>>(int)> Make() {
    return [this](int instance) {
      log_.Add(instance);
      return std::make_unique<CountingRunner>();
    };
  }
  void ExpectEachRanOnce() const {
    for (int i = 0; i < submitted_; ++i) {
      EXPECT_EQ(fates_.at(i).runs, 1) << i;
      EXPECT_EQ(fates_.at(i).failures, 0) << i;
      EXPECT_TRUE(fates_.at(i).destroyed) << i;
    }
  }

  std::array<Fate, 64> fates_;
  int submitted_ = 0;
  Log log_;
  FakeClock clock_;
  TestQueue queue_{clock_, QueueLimits(), {.max_batch_tokens = 3}};
};

class InstancePoolThreadsTest : public InstancePoolTest, public testing::WithParamInterface<int> {};

TEST_P(InstancePoolThreadsTest, RunsWhatWasQueuedBeforeAndAfterItStarted) {
  Submit(queue_, 10);
  {
    InstancePool<TestJob> pool(queue_, GetParam(), Make());
    Submit(queue_, 10);
    queue_.Close();
  }
  ExpectEachRanOnce();
}

TEST_P(InstancePoolThreadsTest, EndsWhenTheQueueWasClosedBeforeItStarted) {
  Submit(queue_, 5);
  queue_.Close();
  { InstancePool<TestJob> pool(queue_, GetParam(), Make()); }
  ExpectEachRanOnce();
}

TEST_P(InstancePoolThreadsTest, EndsWhenTheQueueIsClosedWhileAllWait) {
  auto pool = std::make_unique<InstancePool<TestJob>>(queue_, GetParam(), Make());
  clock_.WaitForWaiters(GetParam(), absl::InfiniteFuture());
  queue_.Close();
  pool.reset();
}

TEST_P(InstancePoolThreadsTest, EndsWhenTheQueueIsFailedAndClosed) {
  InstancePool<TestJob> pool(queue_, GetParam(), Make());
  Submit(queue_, 20);
  queue_.FailAll(absl::UnavailableError("drained too long"));
  queue_.Close();
}

TEST_P(InstancePoolThreadsTest, EachRunnerIsMadeOnItsNamedThread) {
  {
    InstancePool<TestJob> pool(queue_, GetParam(), Make());
    queue_.Close();
  }
  std::set<std::pair<int, std::string>> expected;
  for (int i = 0; i < GetParam(); ++i) expected.emplace(i, "instance-" + std::to_string(i));
  EXPECT_EQ(log_.made(), expected);
}

INSTANTIATE_TEST_SUITE_P(Threads, InstancePoolThreadsTest, testing::Values(1, 2, 3));

// A runner that holds its first batch until it is told to go on.
class BlockedRunner final : public BatchRunner<TestJob> {
 public:
  BlockedRunner(absl::Notification& started, absl::Notification& go, std::vector<size_t>& sizes)
      : started_(started), go_(go), sizes_(sizes) {}
  void Run(Batch<TestJob> batch) override {
    sizes_.push_back(batch.pieces.size());
    if (sizes_.size() > 1) return;
    started_.Notify();
    go_.WaitForNotification();
  }

 private:
  absl::Notification& started_;
  absl::Notification& go_;
  std::vector<size_t>& sizes_;
};

TEST_F(InstancePoolTest, CollectsWhileItIsBusy) {
  absl::Notification started, go;
  std::vector<size_t> sizes;
  {
    InstancePool<TestJob> pool(
        queue_, 1, [&](int) { return std::make_unique<BlockedRunner>(started, go, sizes); });
    Submit(queue_, 1);
    started.WaitForNotification();
    Submit(queue_, 5);
    go.Notify();
    queue_.Close();
  }
  EXPECT_THAT(sizes, testing::ElementsAre(1, 3, 2));
}

class ThrowingRunner final : public BatchRunner<TestJob> {
 public:
  void Run(Batch<TestJob>) override { throw std::runtime_error("a bug"); }
};

TEST(InstancePoolDeathTest, AnExceptionOutOfARunnerEndsTheProcessLoudly) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        FakeClock clock;
        TestQueue queue(clock, QueueLimits(), BatchLimits());
        Fate fate;
        queue.Submit(TestJob(fate, 0, 1)).IgnoreError();
        queue.Close();
        InstancePool<TestJob> pool(queue, 1,
                                   [](int) { return std::make_unique<ThrowingRunner>(); });
      },
      "a bug");
}

}  // namespace instance_pool_test
}  // namespace attendant::server
