// Clock, passed as a parameter so that tests of deadlines and delays never sleep.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace attendant::server {

// The system clock; tests override it. Monotonic, and equal to the wall time when it is made.
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() const;
  // Waits on `changed`, with `mutex` held, until it is signalled or the clock reaches `deadline`.
  // May return spuriously.
  virtual void AwaitUntil(absl::CondVar& changed, absl::Mutex& mutex, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  static absl::Duration Steady();

  const absl::Time origin_ = absl::Now() - Steady();
};

// Returns the clock of the process.
Clock& RealClock();
}  // namespace attendant::server
