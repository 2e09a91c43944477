// Counts the heap allocations of the process by operator new, and by aligned_alloc, which is where
// AlignedBuffer gets its memory; linking this replaces both.
#pragma once

#include <cstdint>

namespace attendant::testing {

// Counts from its construction to its destruction, on all threads. One at a time. What oneDNN
// allocates is left out: it puts the arguments of each product into a small map of its own.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  int64_t count() const;
};

}  // namespace attendant::testing
