// Statuses of requests in which the server's code threw an exception. Exceptions must not reach
// gRPC's callbacks, because the calls would never end, or leave an instance's thread.
#pragma once

#include <type_traits>

#include "absl/status/status.h"

namespace attendant::server {

// Call in a catch block. Returns RESOURCE_EXHAUSTED for std::bad_alloc, otherwise INTERNAL. Does
// not allocate once PrepareFaults has been called.
absl::Status StatusOfException();

void PrepareFaults();

// Runs `body`, which returns nothing or an absl::Status. Returns its status, the status of an
// exception that it throws, or OK.
template <typename Body>
absl::Status Guarded(Body body) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
      body();
      return absl::OkStatus();
    } else {
      return body();
    }
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace attendant::server
