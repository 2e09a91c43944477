// RequestTimes, when one request of a load test was due, sent and answered.
#pragma once

#include "absl/time/time.h"

namespace attendant::client {

struct RequestTimes {
  absl::Time intended;  // when it was due
  absl::Time sent;
  absl::Time answered;
};

}  // namespace attendant::client
