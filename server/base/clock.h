// Clock, passed as a parameter so that tests of deadlines and delays never sleep.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant::server {

// Thread-safe. The time never goes backwards.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
  // Waits on `changed`, with `mutex` held, until it is signalled or the clock reaches `deadline`.
  // May return spuriously.
  virtual void AwaitUntil(absl::CondVar& changed, absl::Mutex& mutex, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
};

// Returns the system clock: monotonic, and equal to the wall time at its first use.
Clock& RealClock();

}  // namespace attendant::server
