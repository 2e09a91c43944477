#include "server/rpc/call/small_receipt.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kMostTime = absl::Seconds(2);
constexpr absl::Duration kMostTimeUnmeasured = absl::Milliseconds(250);
constexpr absl::Duration kEarliestLook = absl::Milliseconds(20);

}  // namespace

SmallReceipt::SmallReceipt(Admission& admission, const std::string& caller,
                           const std::string& connection, AwaitedMessages::GiveUp give_up,
                           absl::Duration time)
    : begun_(RealClock().Now()),
      until_(begun_ + std::min(time, kMostTime)),
      item_(admission.unfinished_bodies(), connection),
      place_(admission.awaited_messages().Add(caller, std::move(give_up))) {
  item_.Begin(UnfinishedBodies::kFirstWindow);
  if (!item_.measured()) until_ = std::min(until_, begun_ + kMostTimeUnmeasured);
}

absl::Time SmallReceipt::next_look() const {
  return std::min(begun_ + std::max(kEarliestLook, 2 * looked_), until_);
}

absl::Status SmallReceipt::Look(absl::Time now) {
  if (now >= until_) {
    return absl::DeadlineExceededError("the request's body did not arrive in time");
  }
  looked_ = now - begun_;
  const int64_t more = item_.Unexplained();
  if (more == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the request's body is too large for this method: ", more + UnfinishedBodies::kFirstWindow,
      " bytes have come on its connection"));
}

Budget::Hold SmallReceipt::Finish(int64_t bytes) {
  item_.Finish(bytes);
  return {};
}

absl::Status TooManyAwaitedError() {
  return Refused(Refusal::kPeerShare,
                 "the request's body has not arrived, and the caller has begun more such requests "
                 "than any other");
}

}  // namespace attendant::server
