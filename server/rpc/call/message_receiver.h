// MessageReceiver, which limits the memory and time of a message being received.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/awaited_messages.h"
#include "server/admission/budget.h"
#include "server/request/service_context.h"
#include "server/transport/metered_connection.h"

namespace attendant::server {

// Exists while a message is read. Not thread-safe. Times are RealClock times.
//
// The permit of a body is a share of the memory budget. A body must arrive within receive_timeout
// plus one second for each min_receive_rate of its bytes, of which at most max_request_bytes count.
// A small message has no permit, but counts among the awaited messages; it must arrive within two
// seconds or receive_timeout. gRPC receives as many bytes as a message announces; its connection
// holds memory for bytes beyond the permit, or beyond the first window. The call fails if there is
// no memory for them, or if its small message is evicted.
class MessageReceiver {
 public:
  // `permit` becomes the allowance of `call`; an empty permit means a small message.
  MessageReceiver(std::shared_ptr<MeteredConnection> connection, ReceivingCall call,
                  const ServiceLimits& limits, Budget::Reservation permit, absl::Time now);

  // Returns when to call Look next.
  absl::Time next_look() const { return begun_ + time_; }

  // Returns DEADLINE_EXCEEDED if the message arrives too slowly.
  absl::Status Look(absl::Time now);

  // Call with the size of the complete message. Returns its permit, grown to that size if the
  // connection held memory for it.
  Budget::Reservation Finish(int64_t bytes);

 private:
  const ServiceLimits& limits_;
  const bool is_small_;
  const absl::Duration timeout_;
  const absl::Time begun_;
  absl::Duration time_;  // allowed for the message, given what had arrived at the last look
  Budget::Reservation permit_;
  const std::unique_ptr<AwaitedMessages::Place> place_;  // null if there is a permit
  MeteredConnection::Receiver receiver_;
};

}  // namespace attendant::server
