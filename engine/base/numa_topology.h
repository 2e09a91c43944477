// The NUMA nodes of the machine: memory and the CPUs nearest to it.
#pragma once

#include <string>
#include <vector>

#include "engine/base/cpu_list.h"

namespace attendant {

struct NumaNode {
  int id = 0;    // the kernel's number
  CpuList cpus;  // that may be used
};

// Where the kernel tells it.
struct NumaFiles {
  std::string nodes = "/sys/devices/system/node";
  std::string status = "/proc/self/status";  // which nodes' memory may be used
};

// The nodes that have memory, and CPUs among `allowed` (not empty, as AllowedCpus gives them); the
// CPUs of a node whose memory is missing, or not allowed, count to the nearest that has some. The
// one that the calling thread runs on comes first, the others by number. One node with all of
// `allowed` if there is nothing to tell apart: the files are missing, or do not say for each CPU
// where it is.
std::vector<NumaNode> FindNumaNodes(const NumaFiles& files, const CpuList& allowed);

}  // namespace attendant
