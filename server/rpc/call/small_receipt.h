// SmallReceipt, the limits on receiving a small message.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/awaited_messages.h"
#include "server/transport/metered_connection.h"

namespace attendant::server {

// Exists while the message is read. Not thread-safe.
//
// gRPC receives as many bytes as a message announces; the connection holds memory for those beyond
// its first window. The call is given up if there is none, or if it is evicted from the awaited
// messages.
class SmallReceipt {
 public:
  // The message must arrive within `time`.
  SmallReceipt(std::shared_ptr<MeteredConnection> connection, const ReceivingCall& call,
               absl::Duration time);

  // When to call Look next, by the real clock.
  absl::Time next_look() const { return until_; }

  // Returns DEADLINE_EXCEEDED if the time is over.
  absl::Status Look() const;

 private:
  const absl::Time until_;
  const MeteredConnection::Receiver receiver_;
  const std::unique_ptr<AwaitedMessages::Place> place_;
};

}  // namespace attendant::server
