#include "server/base/clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"

namespace attendant::server {
namespace clock_test {

TEST(RealClockTest, StartsAtTheWallTimeAndNeverGoesBack) {
  const absl::Time first = RealClock().Now();
  EXPECT_LT(absl::AbsDuration(first - absl::Now()), absl::Hours(1));
  absl::Time last = first;
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = RealClock().Now();
    EXPECT_LE(last, now);
    last = now;
  }
}

TEST(RealClockTest, WaitsUntilTheDeadline) {
  absl::Mutex mutex;
  absl::CondVar changed;
  const absl::Time deadline = RealClock().Now() + absl::Milliseconds(1);
  absl::MutexLock lock(&mutex);
  while (RealClock().Now() < deadline) RealClock().AwaitUntil(changed, mutex, deadline);
}

TEST(RealClockTest, ReturnsWhenTheDeadlineIsPast) {
  absl::Mutex mutex;
  absl::CondVar changed;
  absl::MutexLock lock(&mutex);
  RealClock().AwaitUntil(changed, mutex, RealClock().Now());
  RealClock().AwaitUntil(changed, mutex, absl::InfinitePast());
}

TEST(RealClockTest, WakesWhenSignalledHoweverFarTheDeadline) {
  for (absl::Duration timeout : {absl::Hours(100), absl::InfiniteDuration()}) {
    absl::Mutex mutex;
    absl::CondVar changed;
    bool told = false;
    std::thread teller([&] {
      absl::MutexLock lock(&mutex);
      told = true;
      changed.Signal();
    });
    {
      absl::MutexLock lock(&mutex);
      const absl::Time deadline = RealClock().Now() + timeout;
      while (!told) RealClock().AwaitUntil(changed, mutex, deadline);
    }
    teller.join();
  }
}

}  // namespace clock_test
}  // namespace attendant::server
