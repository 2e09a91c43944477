// SmallReceipt, the limits on receiving a small message.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/admission/awaited_messages.h"
#include "server/admission/unfinished_bodies.h"

namespace attendant::server {

// Exists while the message is read. Not thread-safe.
//
// gRPC receives as many bytes as a message announces. Look therefore checks early, and again
// whenever the elapsed time has doubled, that the message does not grow too large.
class SmallReceipt {
 public:
  // `caller` and `give_up` are those of AwaitedMessages::Add, `connection` that of
  // UnfinishedBodies. `admission` outlives the receipt. The message must arrive within `time`, or
  // sooner if the received bytes are unknown.
  SmallReceipt(Admission& admission, const std::string& caller, const std::string& connection,
               AwaitedMessages::GiveUp give_up, absl::Duration time);

  // When to call Look next, by the real clock.
  absl::Time next_look() const;

  // Returns DEADLINE_EXCEEDED if the time is over, INVALID_ARGUMENT if too many bytes have been
  // received.
  absl::Status Look();

  // To be called with the size of the message once it is complete.
  void Finish(int64_t bytes) { item_.Finish(bytes); }

 private:
  const absl::Time begun_;
  absl::Time until_;
  absl::Duration looked_ = absl::ZeroDuration();  // at the last look, since `begun_`
  UnfinishedBodies::AwaitedItem item_;
  const std::unique_ptr<AwaitedMessages::Place> place_;
};

// Returns the error of an evicted message.
absl::Status TooManyAwaitedError();

}  // namespace attendant::server
