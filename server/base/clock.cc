#include "server/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace attendant::server {
namespace {

absl::Duration Steady() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override { return origin_ + Steady(); }

  void AwaitUntil(absl::CondVar& changed, absl::Mutex& mutex, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    changed.WaitWithTimeout(&mutex, deadline - Now());
  }

 private:
  const absl::Time origin_ = absl::Now() - Steady();
};

}  // namespace

Clock& RealClock() {
  static SteadyClock clock;
  return clock;
}

}  // namespace attendant::server
