// Settings of failing_allocations.cc, in memory that a test shares with the server that it starts.
#pragma once

#include <atomic>
#include <cstdint>

namespace attendant::server {

struct AllocationFaults {
  // The variable that names the file with the settings.
  static constexpr char kVariable[] = "ALLOCATION_FAULTS";

  std::atomic<int64_t> interval;     // on each thread, of allocations that may fail; 0: none fails
  std::atomic<int64_t> least_bytes;  // of an allocation that may fail
  std::atomic<int64_t> failed;       // that have failed so far
};

}  // namespace attendant::server
