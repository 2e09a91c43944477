#include "server/host/node_binding.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <string>

#include "absl/status/status.h"
#include "server/host/freed_memory.h"

namespace attendant::server {

void BindToNode(const NumaNode& node) {
  const absl::Status status = BindThread(node.cpus);
  if (!status.ok()) spdlog::warn("NUMA node {}: {}", node.id, std::string(status.message()));
}

FreshPages::FreshPages() { mallopt(M_MMAP_THRESHOLD, 128 << 10); }

FreshPages::~FreshPages() { mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock); }

}  // namespace attendant::server
