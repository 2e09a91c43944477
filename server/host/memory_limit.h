// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/cgroup.h"

namespace attendant::server {

struct MemoryLimit {
  int64_t bytes = 0;
  std::string reason;  // "of the cgroup", "of the machine": for messages
};

// The least limit of the cgroups that the process is in (v1 or v2) if it is below the machine's
// memory, else that. `meminfo` is "/proc/meminfo" outside tests.
MemoryLimit MeasureMemoryLimit(const CgroupFiles& cgroup, const std::string& meminfo);

}  // namespace attendant::server
