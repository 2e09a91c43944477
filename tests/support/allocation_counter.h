// AllocationCounter, which counts heap allocations by operator new, and by aligned_alloc, from which
// AlignedBuffer gets its memory. Linking this replaces both functions.
#pragma once

#include <cstdint>

namespace attendant::test_support {

// Counts from its construction to its destruction, on all threads. There may be one at a time.
// Allocations by oneDNN are not counted: it puts the arguments of each product into a small map of
// its own.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  int64_t count() const;
};

}  // namespace attendant::test_support
