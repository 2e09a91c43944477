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
#include "server/rpc/call/message_receipt.h"

namespace attendant::server {

// gRPC receives as many bytes as a message announces. Look therefore checks early, and again
// whenever the elapsed time has doubled, that the message does not grow too large.
class SmallReceipt final : public MessageReceipt {
 public:
  // `caller` and `give_up` are those of AwaitedMessages::Add, `connection` that of
  // UnfinishedBodies. `admission` outlives the receipt. The message must arrive within `time`, or
  // sooner if the received bytes are unknown.
  SmallReceipt(Admission& admission, const std::string& caller, const std::string& connection,
               AwaitedMessages::GiveUp give_up, absl::Duration time);

  absl::Time next_look() const override;
  // Returns DEADLINE_EXCEEDED if the time is over, INVALID_ARGUMENT if too many bytes have been
  // received.
  absl::Status Look(absl::Time now) override;
  Budget::Hold Finish(int64_t bytes) override;

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
