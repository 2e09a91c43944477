// MessageReceipt, the limits on receiving a message.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/budget.h"

namespace attendant::server {

// Exists while the message is read. One thread at a time. Times are those of RealClock().
class MessageReceipt {
 public:
  virtual ~MessageReceipt() = default;

  // When to call Look next.
  virtual absl::Time next_look() const = 0;

  // Returns the error of a message that arrives too slowly, is too large, or finds no room.
  virtual absl::Status Look(absl::Time now) = 0;

  // To be called with the size of the message once it is complete. Returns its permit; nothing if
  // it needs none.
  virtual Budget::Hold Finish(int64_t bytes) = 0;
};

}  // namespace attendant::server
