// FakeClock, a clock that advances only when a test tells it to.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"

namespace attendant::server {

// Thread-safe. The mutexes and condition variables that wait on it must outlive every call of
// Advance.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::UnixEpoch()) : now_(start) {}

  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }

  // Advances and wakes all waiting threads, whether or not their deadlines have passed.
  void Advance(absl::Duration duration) {
    std::vector<Waiter> waiters;
    {
      absl::MutexLock lock(&mutex_);
      now_ += duration;
      waiters = waiters_;
    }
    for (const Waiter& waiter : waiters) {
      // A thread that has registered holds its mutex until it waits, so that with the mutex held,
      // the signal cannot come too early.
      absl::MutexLock lock(waiter.mutex);
      waiter.changed->SignalAll();
    }
  }

  void AwaitUntil(absl::CondVar& changed, absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const Waiter waiter{&changed, &mutex, deadline};
    {
      absl::MutexLock lock(&mutex_);
      if (now_ >= deadline) return;
      waiters_.push_back(waiter);
    }
    changed.Wait(&mutex);
    absl::MutexLock lock(&mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), waiter));
  }

  // Blocks until `threads` threads wait for exactly `deadline`. They cannot miss what a test then
  // does under the mutex that they wait with.
  void WaitForWaiters(int threads, absl::Time deadline) {
    const std::pair<int, absl::Time> wanted(threads, deadline);
    auto waiting = [this, &wanted]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return wanted.first == std::count_if(waiters_.begin(), waiters_.end(), [&](const Waiter& w) {
               return w.deadline == wanted.second;
             });
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&waiting));
  }

 private:
  struct Waiter {
    absl::CondVar* changed;
    absl::Mutex* mutex;
    absl::Time deadline;
    bool operator==(const Waiter&) const = default;
  };

  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
