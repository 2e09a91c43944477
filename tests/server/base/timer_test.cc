#include "server/base/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace timer_test {

constexpr absl::Duration kMs = absl::Milliseconds(1);

// Counts how often a thread falls asleep.
class CountingClock final : public Clock {
 public:
  explicit CountingClock(FakeClock& clock) : clock_(clock) {}
  absl::Time Now() const override { return clock_.Now(); }
  void AwaitUntil(absl::CondVar& changed, absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    ++sleeps_;
    clock_.AwaitUntil(changed, mutex, deadline);
  }
  int sleeps() const { return sleeps_; }

 private:
  FakeClock& clock_;
  std::atomic<int> sleeps_ = 0;
};

class TimerTest : public ::testing::Test {
 protected:
  absl::Time In(absl::Duration duration) const { return clock_.Now() + duration; }

  // Appends `name` to the calls that were made.
  std::function<void()> Note(char name) {
    return [this, name] {
      absl::MutexLock lock(&mutex_);
      made_ += name;
    };
  }

  void AwaitMade(const std::string& made) {
    auto are = [&] { return made_ == made; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&are));
  }

  FakeClock clock_;
  absl::Mutex mutex_;
  std::string made_;
};

TEST_F(TimerTest, CallsInTheOrderOfTheirTimes) {
  Timer timer(clock_);
  timer.Set(In(3 * kMs), Note('c'));
  timer.Set(In(1 * kMs), Note('a'));
  timer.Set(In(2 * kMs), Note('b'));
  timer.Set(In(2 * kMs), Note('B'));
  clock_.WaitForWaiters(1, In(1 * kMs));
  clock_.Advance(2 * kMs);
  AwaitMade("abB");
  clock_.Advance(1 * kMs);
  AwaitMade("abBc");
}

TEST_F(TimerTest, CallsAtOnceWhatIsPast) {
  Timer timer(clock_);
  timer.Set(In(-kMs), Note('a'));
  AwaitMade("a");
  timer.Set(clock_.Now(), Note('b'));
  AwaitMade("ab");
}

TEST_F(TimerTest, WhatIsCancelledIsDestroyedAndNotCalled) {
  Timer timer(clock_);
  const auto owned = std::make_shared<int>();
  const Timer::Ticket first = timer.Set(In(1 * kMs), [owned] { FAIL(); });
  timer.Set(In(1 * kMs), Note('a'));
  timer.Cancel(first);
  EXPECT_EQ(owned.use_count(), 1);
  clock_.WaitForWaiters(1, In(1 * kMs));
  clock_.Advance(1 * kMs);
  AwaitMade("a");
  timer.Cancel(first);  // without effect
}

TEST_F(TimerTest, IsNotWokenForWhatIsLaterOrCancelled) {
  CountingClock counting(clock_);
  Timer timer(counting);
  clock_.WaitForWaiters(1, absl::InfiniteFuture());
  const Timer::Ticket first = timer.Set(In(2 * kMs), Note('a'));
  clock_.WaitForWaiters(1, In(2 * kMs));
  timer.Cancel(first);
  timer.Set(In(3 * kMs), Note('b'));
  timer.Set(In(4 * kMs), Note('c'));
  clock_.Advance(2 * kMs);
  clock_.WaitForWaiters(1, In(1 * kMs));
  EXPECT_EQ(counting.sleeps(), 3);
  timer.Set(In(kMs / 2), Note('d'));
  clock_.WaitForWaiters(1, In(kMs / 2));
  clock_.Advance(2 * kMs);
  AwaitMade("dbc");
}

TEST_F(TimerTest, ACallMaySetAndCancelOthers) {
  Timer timer(clock_);
  const Timer::Ticket other = timer.Set(In(2 * kMs), Note('x'));
  timer.Set(In(1 * kMs), [&] {
    timer.Cancel(other);
    timer.Set(clock_.Now(), Note('a'));
  });
  clock_.WaitForWaiters(1, In(1 * kMs));
  clock_.Advance(2 * kMs);
  AwaitMade("a");
}

TEST_F(TimerTest, ItsEndAwaitsTheCallUnderWayAndDropsTheOthers) {
  absl::Notification begun, may_end;
  std::thread end;
  {
    auto timer = std::make_unique<Timer>(clock_);
    timer->Set(clock_.Now(), [&] {
      begun.Notify();
      may_end.WaitForNotification();
      Note('a')();
    });
    timer->Set(In(1 * kMs), Note('x'));
    begun.WaitForNotification();
    end = std::thread([&, timer = std::move(timer)]() mutable { timer.reset(); });
  }
  may_end.Notify();
  end.join();
  EXPECT_EQ(made_, "a");
}

}  // namespace timer_test
}  // namespace attendant::server
