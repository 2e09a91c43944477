// Settings of failing_allocations.cc, in memory that a test shares with the server that it starts.
#pragma once

#include <atomic>
#include <cstdint>

namespace attendant::server {

struct AllocationFaults {
  // The variable that names the file with the settings.
  static constexpr char kVariable[] = "ALLOCATION_FAULTS";

  // Counts allocations down. The one that takes it to zero fails; below that, none is counted.
  std::atomic<int64_t> until_failure;
};

}  // namespace attendant::server
