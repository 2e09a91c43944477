// The number of threads that this process should compute with.
#pragma once

#include <string>

#include "engine/base/cgroup.h"

namespace attendant {

struct CpuBudget {
  int threads;         // at least 1
  std::string reason;  // one line for the log: "2 of 8 CPUs by affinity, cgroup quota 1.5"
};

// The CPUs that affinity allows, cut to the least quota of the cgroups that the process is in (v1
// or v2; rounded up to a whole CPU).
CpuBudget MeasureCpuBudget(const CgroupFiles& cgroup = {});

}  // namespace attendant
