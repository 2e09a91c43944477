// Threads that work beside their memory.
#pragma once

#include "engine/base/numa_topology.h"

namespace attendant::server {

// The calling thread, and those that it starts from then on, run on the node's CPUs alone: pages
// that they are the first to write lie there. If that cannot be, it is logged, and they run
// anywhere.
void BindToNode(const NumaNode& node);

// While one lives, allocations of 128 KiB and up get pages that nobody has written. Else malloc may
// hand out some that a thread of another node has written and freed. Afterwards malloc holds on to
// freed memory as it does by itself once it has seen the largest buffers.
class FreshPages {
 public:
  FreshPages();
  ~FreshPages();
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;
};

}  // namespace attendant::server
