// Placement of threads and memory on a NUMA node.
#pragma once

#include "server/host/numa_topology.h"

namespace attendant::server {

// Binds the calling thread, and threads that it starts later, to the CPUs of `node`. The kernel
// then places pages that they write first in the memory of that node. If binding fails, logs a
// warning, and the threads run on any CPU.
void BindToNode(const NumaNode& node);

// During its lifetime, malloc serves allocations of 128 KiB and more with fresh pages instead of
// memory that a thread on another node has written and freed. The destructor restores the threshold
// of LimitHeaps for the whole process, so that freed memory is reused again.
class FreshPages {
 public:
  FreshPages();
  ~FreshPages();
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;
};

}  // namespace attendant::server
