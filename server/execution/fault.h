// Statuses of requests that end because our own code has thrown. Nothing may be thrown into gRPC's
// callbacks, whose calls would then never end, or out of an instance's thread.
#pragma once

#include "absl/status/status.h"

namespace attendant::server {

// To be called in a catch block: RESOURCE_EXHAUSTED for std::bad_alloc, INTERNAL for anything else.
// Allocates nothing, once PrepareFaults has been called.
absl::Status StatusOfException();

void PrepareFaults();

// Runs `body`, and returns OK or the status of what it throws.
template <typename Body>
absl::Status Guarded(Body body) {
  try {
    body();
    return absl::OkStatus();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace attendant::server
