// The options and the callback type that all calls of the client share.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant::client {

// Options of one call.
struct CallOptions {
  // The call fails with DEADLINE_EXCEEDED after this time. The server knows the deadline too and
  // does not start work that would come too late.
  absl::Duration timeout = absl::InfiniteDuration();
};

// Receives the result of an asynchronous call. See the call for the thread that it runs on.
template <typename T>
using Callback = std::function<void(absl::StatusOr<T>)>;

}  // namespace attendant::client
