// LoadClock, the time of the load generator, which tests replace so that they need not wait.
#pragma once

#include "absl/time/time.h"

namespace attendant::client {

// Thread-safe.
class LoadClock {
 public:
  virtual ~LoadClock() = default;

  // Never goes back. Only differences are meaningful.
  virtual absl::Time Now() = 0;

  // Returns at `time` or later.
  virtual void WaitUntil(absl::Time time) = 0;

  // Returns the monotonic clock of the machine.
  static LoadClock& Real();
};

}  // namespace attendant::client
