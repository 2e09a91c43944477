// MessageReceiver, which limits the memory and time of a message being received.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/awaited_messages.h"
#include "server/admission/budget.h"
#include "server/transport/metered_connection.h"

namespace attendant::server {

// A message must arrive within the timeout plus one second for each `min_rate` of its bytes, of
// which at most `most` count.
struct ReceivingLimits {
  int64_t most = 0;
  absl::Duration timeout;
  int64_t min_rate = 0;
};

// Exists while a message is read. Not thread-safe. Times are RealClock times.
//
// The permit of a body is a share of the memory budget. A small message has none, but counts among
// the awaited messages. gRPC receives as many bytes as a message announces; its connection holds
// memory for bytes beyond the permit, or beyond the first window. The call fails if there is no
// memory for them, or if its small message is evicted.
class MessageReceiver {
 public:
  // `permit` becomes the allowance of `call`; an empty permit means a small message.
  MessageReceiver(std::shared_ptr<MeteredConnection> connection, ReceivingCall call,
                  const ReceivingLimits& limits, Budget::Reservation permit, absl::Time now);

  // Returns when to call Look next.
  absl::Time next_look() const { return begun_ + time_; }

  // Returns DEADLINE_EXCEEDED if the message arrives too slowly.
  absl::Status Look(absl::Time now);

  // Call with the size of the complete message. Returns its permit, grown to that size if the
  // connection held memory for it.
  Budget::Reservation Finish(int64_t bytes);

 private:
  const ReceivingLimits limits_;
  const absl::Time begun_;
  absl::Duration time_;  // allowed for the message, given what had arrived at the last look
  Budget::Reservation permit_;
  const std::unique_ptr<AwaitedMessages::Place> place_;  // null if there is a permit
  MeteredConnection::Receiver receiver_;
};

}  // namespace attendant::server
