// AllocationCounter, which counts the heap allocations of the process by operator new, and by
// aligned_alloc, from which AlignedBuffer gets its memory. Linking this replaces both functions.
#pragma once

#include <cstdint>

namespace attendant::testing {

// Counts from its construction to its destruction, on all threads. There may be one at a time.
// Allocations by oneDNN are not counted: it puts the arguments of each product into a small map of
// its own.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  int64_t count() const;
};

}  // namespace attendant::testing
