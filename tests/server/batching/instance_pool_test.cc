#include "server/batching/instance_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <functional>
#include <memory>
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

class CountingRunner {
 public:
  ~CountingRunner() { EXPECT_EQ(std::this_thread::get_id(), home_); }
  void Run(const Batch& batch) {
    EXPECT_EQ(std::this_thread::get_id(), home_);
    EXPECT_FALSE(batch.entries.empty());
    for (TestJob* job : JobsOf(batch)) ++job->fate.runs;
  }

 private:
  const std::thread::id home_ = std::this_thread::get_id();
};

class InstancePoolTest : public testing::Test {
 protected:
  void Submit(BatchQueue& queue, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      const int id = submitted_++;
      ASSERT_TRUE(queue.Submit(std::make_shared<TestJob>(fates_.at(id), id, 1)).ok());
    }
  }
  std::function<RunBatch(int)> Make() {
    return [this](int instance) {
      log_.Add(instance);
      return [runner = std::make_shared<CountingRunner>()](const Batch& b) { runner->Run(b); };
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
  BatchQueue queue_{clock_, QueueLimits(), {.max_batch_tokens = 3}};
};

class InstancePoolThreadsTest : public InstancePoolTest, public testing::WithParamInterface<int> {};

TEST_P(InstancePoolThreadsTest, RunsWhatWasQueuedBeforeAndAfterItStarted) {
  Submit(queue_, 10);
  {
    InstancePool pool(queue_, GetParam(), Make());
    Submit(queue_, 10);
    queue_.Close();
  }
  ExpectEachRanOnce();
}

TEST_P(InstancePoolThreadsTest, EndsWhenTheQueueWasClosedBeforeItStarted) {
  Submit(queue_, 5);
  queue_.Close();
  { InstancePool pool(queue_, GetParam(), Make()); }
  ExpectEachRanOnce();
}

TEST_P(InstancePoolThreadsTest, EndsWhenTheQueueIsClosedWhileAllWait) {
  auto pool = std::make_unique<InstancePool>(queue_, GetParam(), Make());
  clock_.WaitForWaiters(GetParam(), absl::InfiniteFuture());
  queue_.Close();
  pool.reset();
}

TEST_P(InstancePoolThreadsTest, EndsWhenTheQueueIsFailedAndClosed) {
  InstancePool pool(queue_, GetParam(), Make());
  Submit(queue_, 20);
  queue_.FailAll(absl::UnavailableError("drained too long"));
  queue_.Close();
}

TEST_P(InstancePoolThreadsTest, EachRunnerIsMadeOnItsNamedThread) {
  {
    InstancePool pool(queue_, GetParam(), Make());
    queue_.Close();
  }
  std::set<std::pair<int, std::string>> expected;
  for (int i = 0; i < GetParam(); ++i) expected.emplace(i, "instance-" + std::to_string(i));
  EXPECT_EQ(log_.made(), expected);
}

INSTANTIATE_TEST_SUITE_P(Threads, InstancePoolThreadsTest, testing::Values(1, 2, 3));

TEST_F(InstancePoolTest, CollectsWhileItIsBusy) {
  absl::Notification started, go;
  std::vector<size_t> sizes;
  {
    InstancePool pool(queue_, 1, [&](int) {
      return [&](const Batch& batch) {
        sizes.push_back(batch.entries.size());
        if (sizes.size() > 1) return;
        started.Notify();
        go.WaitForNotification();
      };
    });
    Submit(queue_, 1);
    started.WaitForNotification();
    Submit(queue_, 5);
    go.Notify();
    queue_.Close();
  }
  EXPECT_THAT(sizes, testing::ElementsAre(1, 3, 2));
}

TEST(InstancePoolDeathTest, AnExceptionOutOfARunnerEndsTheProcessLoudly) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        FakeClock clock;
        BatchQueue queue(clock, QueueLimits(), BatchLimits());
        Fate fate;
        queue.Submit(std::make_shared<TestJob>(fate, 0, 1)).IgnoreError();
        queue.Close();
        InstancePool pool(
            queue, 1, [](int) { return [](const Batch&) { throw std::runtime_error("a bug"); }; });
      },
      "a bug");
}

}  // namespace instance_pool_test
}  // namespace attendant::server
