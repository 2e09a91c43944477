// The number of compute threads that this process should use.
#pragma once

#include <string>

#include "engine/base/cgroup.h"

namespace attendant {

struct CpuBudget {
  int threads;         // at least 1
  std::string reason;  // one line for the log: "2 of 8 CPUs by affinity, cgroup quota 1.50"
};

// Returns the number of CPUs that affinity allows, limited by the smallest quota of the process's
// cgroups (v1 or v2), rounded up to a whole CPU.
CpuBudget MeasureCpuBudget(const CgroupFiles& cgroup = {});

}  // namespace attendant
