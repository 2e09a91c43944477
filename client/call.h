// Options and callbacks of every call.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant::client {

struct CallOptions {
  // The call fails with DEADLINE_EXCEEDED after this long. The server sees it and does not start
  // what comes too late.
  absl::Duration timeout = absl::InfiniteDuration();
};

template <typename T>
using Callback = std::function<void(absl::StatusOr<T>)>;

}  // namespace attendant::client
