#include "server/base/clock.h"

#include <chrono>

namespace attendant::server {

absl::Time Clock::Now() const { return origin_ + Steady(); }

void Clock::AwaitUntil(absl::CondVar& changed, absl::Mutex& mutex, absl::Time deadline) {
  changed.WaitWithTimeout(&mutex, deadline - Now());
}

absl::Duration Clock::Steady() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

Clock& RealClock() {
  static Clock clock;
  return clock;
}

}  // namespace attendant::server
