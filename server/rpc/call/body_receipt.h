// BodyReceipt, the memory and the time that the body of a call may take while it is received.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/admission/unfinished_bodies.h"
#include "server/rpc/call/message_receipt.h"

namespace attendant::server {

struct ReceiptLimits {
  int64_t most = 0;  // bytes of a body
  // A body is given up after the time-out and a second for each `min_rate` bytes.
  absl::Duration timeout;
  int64_t min_rate = 0;
};

// The permit of a body is a share of the memory budget. It is checked soon after the reading began,
// whenever the elapsed time has doubled, and when the time is over. If the kernel tells what the
// connection has received, the permit grows to what may have arrived. If not, it doubles whenever
// its bytes could have arrived at the least rate; what a body takes beyond its permit is then
// bounded by gRPC's own quota.
class BodyReceipt final : public MessageReceipt {
 public:
  // `connection` is the caller's, as UnfinishedBodies takes it. `admission` outlives the receipt.
  BodyReceipt(Admission& admission, const ReceiptLimits& limits, std::string peer,
              const std::string& connection, Budget::Hold permit, absl::Time now);

  absl::Time next_look() const override;

  // Charges what may have arrived. DEADLINE_EXCEEDED: the body came too slowly. Otherwise the
  // errors of Admission::Charge.
  absl::Status Look(absl::Time now) override;

  Budget::Hold Finish(int64_t bytes) override;

 private:
  // When a body of this many bytes has had its time.
  absl::Duration LimitFor(int64_t bytes) const;
  absl::Status GrowByGuess(absl::Duration elapsed);
  absl::Status GrowTo(int64_t bytes);
  absl::Status TooSlow() const;

  Admission& admission_;
  const ReceiptLimits limits_;
  const std::string peer_;
  const absl::Time begun_;
  Budget::Hold permit_;
  const std::unique_ptr<UnfinishedBodies::Body> body_;
  int64_t arrived_ = 0;  // at the last look, at most; 0 if that is not known
  absl::Duration looked_ = absl::ZeroDuration();  // at the last look, since `begun_`
};

}  // namespace attendant::server
