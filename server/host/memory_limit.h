// The amount of memory that this process may use.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/cgroup.h"

namespace attendant::server {

struct MemoryLimit {
  int64_t bytes = 0;
  std::string reason;       // for messages: "of the cgroup" or "of the machine"
  bool of_machine = false;  // nobody has set it: others may want some of it
};

// Returns the lowest limit of the cgroups that contain this process (v1 or v2), or the memory of
// the machine if that is lower or no cgroup has a limit. `meminfo` is "/proc/meminfo" except in
// tests.
MemoryLimit MeasureMemoryLimit(const CgroupFiles& cgroup, const std::string& meminfo);

}  // namespace attendant::server
