// The NUMA nodes of the machine. A node is memory with the CPUs that are nearest to it.
#pragma once

#include <string>
#include <vector>

#include "engine/base/cpu_list.h"

namespace attendant {

struct NumaNode {
  int id = 0;    // the kernel's number
  CpuList cpus;  // only allowed ones
};

// Returns the nodes that have memory and CPUs in `allowed`, which is not empty (see AllowedCpus).
// CPUs of a node without allowed memory are assigned to the nearest node that has some. The node of
// the calling thread is first; the others are in ascending order. Returns one node with all of
// `allowed` if the kernel's files are missing or do not assign every CPU to a node: those below
// `nodes`, and `status`, which lists the nodes with allowed memory.
std::vector<NumaNode> FindNumaNodes(const CpuList& allowed,
                                    const std::string& nodes = "/sys/devices/system/node",
                                    const std::string& status = "/proc/self/status");

}  // namespace attendant
