// Options and callback type of all calls.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant::client {

// Options of one call.
struct CallOptions {
  // The call fails with DEADLINE_EXCEEDED after this time. The server also receives the deadline
  // and does not start work that would miss it.
  absl::Duration timeout = absl::InfiniteDuration();
};

// Receives the result of an asynchronous call, on the thread that the call documents.
template <typename T>
using Callback = std::function<void(absl::StatusOr<T>)>;

}  // namespace attendant::client
