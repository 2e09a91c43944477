// Statuses of requests that end because our own code has thrown. Nothing may be thrown into gRPC's
// callbacks, whose calls would then never end, or out of an instance's thread.
#pragma once

#include <type_traits>

#include "absl/status/status.h"

namespace attendant::server {

// To be called in a catch block: RESOURCE_EXHAUSTED for std::bad_alloc, INTERNAL for anything else.
// Allocates nothing, once PrepareFaults has been called.
absl::Status StatusOfException();

void PrepareFaults();

// Runs `body`, which returns nothing or an absl::Status. Returns that status, or that of what it
// throws; else OK.
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
