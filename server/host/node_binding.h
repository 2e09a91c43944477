// Placement of threads and memory on a NUMA node.
#pragma once

#include "engine/base/numa_topology.h"

namespace attendant::server {

// Restricts the calling thread, and the threads that it starts afterwards, to the CPUs of `node`.
// The kernel then places the pages that they are first to write in the memory of that node. If
// binding fails, this logs a warning and the threads run on any CPU.
void BindToNode(const NumaNode& node);

// While an object of this class exists, malloc serves allocations of 128 KiB and more with fresh
// pages. Otherwise it might reuse memory that a thread on another node has written and freed. The
// destructor sets the threshold of the whole process back to that of LimitHeaps, so that from then
// on freed memory is reused.
class FreshPages {
 public:
  FreshPages();
  ~FreshPages();
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;
};

}  // namespace attendant::server
