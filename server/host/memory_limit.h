// The memory limit of this process.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/cgroup.h"

namespace attendant::server {

struct MemoryLimit {
  int64_t bytes = 0;
  std::string reason;       // for messages: "of the cgroup" or "of the machine"
  bool of_machine = false;  // not set explicitly; other processes may need some of it
};

// Returns the lowest limit of the cgroups (v1 or v2) that contain this process, or the machine's
// memory if that is lower or no limit is set. `meminfo` is "/proc/meminfo" except in tests.
MemoryLimit MeasureMemoryLimit(const CgroupFiles& cgroup, const std::string& meminfo);

}  // namespace attendant::server
