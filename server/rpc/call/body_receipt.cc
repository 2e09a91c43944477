#include "server/rpc/call/body_receipt.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant::server {

BodyReceipt::BodyReceipt(std::shared_ptr<MeteredConnection> connection, ReceivingCall call,
                         const ReceiptLimits& limits, Budget::Hold permit, absl::Time now)
    : limits_(limits),
      begun_(now),
      time_(limits.timeout),
      permit_(std::move(permit)),
      receiver_(std::move(connection), std::move(call)) {
  receiver_.SetAllowance(permit_.amount());
}

absl::Status BodyReceipt::Look(absl::Time now) {
  const auto arrived = static_cast<double>(std::min(receiver_.received(), limits_.most));
  time_ = limits_.timeout + absl::Seconds(arrived / static_cast<double>(limits_.min_rate));
  if (now < next_look()) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "the request's body did not arrive within ", absl::FormatDuration(limits_.timeout),
      " and a second for each ", limits_.min_rate, " bytes (--min-receive-rate)"));
}

Budget::Hold BodyReceipt::Finish(int64_t bytes) {
  receiver_.TakeOver(bytes, permit_);
  return std::move(permit_);
}

}  // namespace attendant::server
