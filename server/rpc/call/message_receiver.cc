#include "server/rpc/call/message_receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/fault.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kMostTimeOfSmall = absl::Seconds(2);

absl::Status TooManyAwaitedError() {
  return Refused(Refusal::kPeerShare,
                 "the request's body has not arrived, and the client has more such requests open "
                 "than any other");
}

std::unique_ptr<AwaitedMessages::Place> AwaitSmall(const ReceivingCall& call) {
  return call.admission.awaited_messages().Add(
      call.peer, [give_up = call.give_up] { give_up(Guarded(TooManyAwaitedError)); });
}

}  // namespace

MessageReceiver::MessageReceiver(std::shared_ptr<MeteredConnection> connection, ReceivingCall call,
                                 const ServiceLimits& limits, Budget::Reservation permit,
                                 absl::Time now)
    : limits_(limits),
      is_small_(permit.empty()),
      timeout_(is_small_ ? std::min(limits.receive_timeout, kMostTimeOfSmall)
                         : limits.receive_timeout),
      begun_(now),
      time_(timeout_),
      permit_(std::move(permit)),
      place_(is_small_ ? AwaitSmall(call) : nullptr),
      receiver_(std::move(connection), std::move(call)) {
  receiver_.SetAllowance(permit_.amount());
}

absl::Status MessageReceiver::Look(absl::Time now) {
  if (!is_small_) {
    const int64_t arrived = std::min(receiver_.received(), limits_.max_request_bytes);
    time_ = timeout_ + absl::Seconds(static_cast<double>(arrived) /
                                     static_cast<double>(limits_.min_receive_rate));
  }
  if (now < next_look()) return absl::OkStatus();
  const std::string time =
      is_small_ ? "in time"
                : absl::StrCat("within ", absl::FormatDuration(timeout_), " and a second for each ",
                               limits_.min_receive_rate, " bytes (--min-receive-rate)");
  return absl::DeadlineExceededError(absl::StrCat("the request's body did not arrive ", time));
}

Budget::Reservation MessageReceiver::Finish(int64_t bytes) {
  receiver_.TakeOver(bytes, permit_);
  return std::move(permit_);
}

}  // namespace attendant::server
