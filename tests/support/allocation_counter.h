// AllocationCounter and FailingAllocation, which count and fail heap allocations by operator new,
// and by aligned_alloc, from which AlignedBuffer gets its memory. Linking this replaces both
// functions.
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

// While it lives, the `nth` allocation (from 1 on) that the code of this program itself makes on
// this thread fails, with std::bad_alloc or null. There may be one of a thread at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t nth);
  ~FailingAllocation();
  // True if the allocation of that number was reached.
  bool failed() const;
};

}  // namespace attendant::test_support
