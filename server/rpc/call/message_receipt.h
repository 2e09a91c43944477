// MessageReceipt, the memory and the time that a message may take while it is received.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/awaited_messages.h"
#include "server/admission/budget.h"
#include "server/transport/metered_connection.h"

namespace attendant::server {

// A message is given up after the time-out and a second for each `min_rate` bytes of it, of which
// at most `most` count.
struct ReceiptLimits {
  int64_t most = 0;
  absl::Duration timeout;
  int64_t min_rate = 0;
};

// Exists while the message is read. One thread at a time. Times are those of RealClock().
//
// The permit of a body is a share of the memory budget. A small message needs none, but is one of
// the awaited messages. gRPC receives as many bytes as a message announces: what it takes beyond
// its permit, or beyond the first window, is held by its connection. The call is given up if there
// is no room for that, or if its small message is evicted.
class MessageReceipt {
 public:
  // `permit` becomes the allowance of `call`; without one, the message is small.
  MessageReceipt(std::shared_ptr<MeteredConnection> connection, ReceivingCall call,
                 const ReceiptLimits& limits, Budget::Hold permit, absl::Time now);

  // When to call Look next.
  absl::Time next_look() const { return begun_ + time_; }

  // DEADLINE_EXCEEDED: the message came too slowly.
  absl::Status Look(absl::Time now);

  // To be called with the size of the message once it is complete. Returns its permit, which has
  // grown to that size if the connection held memory for it.
  Budget::Hold Finish(int64_t bytes);

 private:
  const ReceiptLimits limits_;
  const absl::Time begun_;
  absl::Duration time_;  // that the message has, by what had arrived at the last look
  Budget::Hold permit_;
  const std::unique_ptr<AwaitedMessages::Place> place_;  // null: it has a permit
  MeteredConnection::Receiver receiver_;
};

}  // namespace attendant::server
