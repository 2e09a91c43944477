#include "server/rpc/call/body_receipt.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kFirstLook = absl::Milliseconds(20);

}  // namespace

BodyReceipt::BodyReceipt(Admission& admission, const ReceiptLimits& limits, std::string peer,
                         const std::string& connection, Budget::Hold permit, absl::Time now)
    : admission_(admission),
      limits_(limits),
      peer_(std::move(peer)),
      begun_(now),
      permit_(std::move(permit)),
      body_(admission.unfinished_bodies().Begin(connection, permit_.amount())) {}

absl::Duration BodyReceipt::LimitFor(int64_t bytes) const {
  return limits_.timeout +
         absl::Seconds(static_cast<double>(bytes) / static_cast<double>(limits_.min_rate));
}

absl::Time BodyReceipt::next_look() const {
  const absl::Duration next = std::max(kFirstLook, 2 * looked_);
  const absl::Duration limit = LimitFor(arrived_);
  const absl::Duration at = limit > looked_ ? std::min(next, limit) : next;
  return begun_ + at;
}

absl::Status BodyReceipt::Look(absl::Time now) {
  looked_ = now - begun_;
  const std::optional<int64_t> measured = body_->Measure();
  if (!measured) return GrowByGuess(looked_);
  arrived_ = std::min(*measured, limits_.most);
  if (looked_ >= LimitFor(arrived_)) return TooSlow();
  return GrowTo(arrived_);
}

absl::Status BodyReceipt::GrowByGuess(absl::Duration elapsed) {
  if (elapsed < LimitFor(std::min(permit_.amount(), limits_.most))) return absl::OkStatus();
  // As much as could have come by now at the least rate.
  const double could =
      absl::ToDoubleSeconds(elapsed - limits_.timeout) * static_cast<double>(limits_.min_rate);
  if (could >= static_cast<double>(limits_.most)) return TooSlow();
  return GrowTo(
      std::min(std::max(2 * permit_.amount(), static_cast<int64_t>(could)), limits_.most));
}

absl::Status BodyReceipt::GrowTo(int64_t bytes) {
  if (bytes <= permit_.amount()) return absl::OkStatus();
  const absl::Status status = admission_.Charge({peer_, bytes, HeldFor::kReceiving}, permit_);
  if (status.ok()) body_->Charge(bytes);
  return status;
}

absl::Status BodyReceipt::TooSlow() const {
  return absl::DeadlineExceededError(absl::StrCat(
      "the request's body did not arrive within ", absl::FormatDuration(limits_.timeout),
      " and a second for each ", limits_.min_rate, " bytes (--min-receive-rate)"));
}

Budget::Hold BodyReceipt::Finish(int64_t bytes) {
  body_->Finish(bytes);
  return std::move(permit_);
}

}  // namespace attendant::server
