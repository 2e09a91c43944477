#include "server/rpc/call/small_receipt.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/fault.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kMostTime = absl::Seconds(2);

absl::Status TooManyAwaitedError() {
  return Refused(Refusal::kPeerShare,
                 "the request's body has not arrived, and the caller has begun more such requests "
                 "than any other");
}

}  // namespace

SmallReceipt::SmallReceipt(std::shared_ptr<MeteredConnection> connection, const ReceivingCall& call,
                           absl::Duration time)
    : until_(absl::Now() + std::min(time, kMostTime)),
      receiver_(std::move(connection), call),
      place_(call.admission.awaited_messages().Add(
          call.peer, [give_up = call.give_up] { give_up(Guarded(TooManyAwaitedError)); })) {}

absl::Status SmallReceipt::Look() const {
  if (absl::Now() < until_) return absl::OkStatus();
  return absl::DeadlineExceededError("the request's body did not arrive in time");
}

}  // namespace attendant::server
