// BodyReceipt, the memory and the time that the body of a call may take while it is received.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/budget.h"
#include "server/transport/metered_connection.h"

namespace attendant::server {

struct ReceiptLimits {
  int64_t most = 0;  // bytes of a body
  // A body is given up after the time-out and a second for each `min_rate` bytes.
  absl::Duration timeout;
  int64_t min_rate = 0;
};

// From the start of the reading to its end. One thread at a time.
//
// The permit of a body is a share of the memory budget. What the body takes beyond it is held by
// its connection, which also gives the call up if there is no room.
class BodyReceipt {
 public:
  // The permit is the call's allowance.
  BodyReceipt(std::shared_ptr<MeteredConnection> connection, ReceivingCall call,
              const ReceiptLimits& limits, Budget::Hold permit, absl::Time now);

  // When to call Look next.
  absl::Time next_look() const { return begun_ + time_; }

  // DEADLINE_EXCEEDED: the body came too slowly.
  absl::Status Look(absl::Time now);

  // The body has arrived, with this many bytes. Returns its permit, which has grown to them if the
  // connection held memory for them.
  Budget::Hold Finish(int64_t bytes);

 private:
  const ReceiptLimits limits_;
  const absl::Time begun_;
  absl::Duration time_;  // that the body has, by what had arrived at the last look
  Budget::Hold permit_;
  MeteredConnection::Receiver receiver_;
};

}  // namespace attendant::server
