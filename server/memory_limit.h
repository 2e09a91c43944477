// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace attendant::server {

inline constexpr char kCgroupRoot[] = "/sys/fs/cgroup";

struct MemoryLimit {
  int64_t bytes = 0;
  std::string reason;  // "of the cgroup", "of the machine": for messages
};

// The cgroup's limit (v1 or v2) if it is below the machine's memory, else that. `cgroup_root` is
// kCgroupRoot and `meminfo` "/proc/meminfo" outside tests.
MemoryLimit MeasureMemoryLimit(const std::string& cgroup_root, const std::string& meminfo);

}  // namespace attendant::server
