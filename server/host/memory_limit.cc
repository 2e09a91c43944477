#include "server/host/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"

namespace attendant::server {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// If there is no limit, memory.max of cgroup v2 says "max", which is skipped, and
// memory.limit_in_bytes of v1 a number larger than the memory of any machine.
int64_t CgroupBytes(const CgroupFiles& cgroup) {
  int64_t least = kUnlimited;
  for (const std::string& folder : CgroupFolders(cgroup, "memory")) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      std::ifstream stream(folder + file);
      std::string text;
      int64_t bytes;
      if (stream >> text && absl::SimpleAtoi(text, &bytes) && bytes > 0) {
        least = std::min(least, bytes);
      }
    }
  }
  return least;
}

int64_t MachineBytes(const std::string& meminfo) {
  std::ifstream stream(meminfo);
  std::string name;
  int64_t kibibytes;
  std::string unit;
  while (stream >> name >> kibibytes) {
    if (name == "MemTotal:") return kibibytes * 1024;
    std::getline(stream, unit);
  }
  return kUnlimited;
}

}  // namespace

MemoryLimit MeasureMemoryLimit(const CgroupFiles& cgroup, const std::string& meminfo) {
  const int64_t limit = CgroupBytes(cgroup);
  const int64_t machine = MachineBytes(meminfo);
  if (limit < machine) return {limit, "of the cgroup"};
  return {machine, "of the machine", true};
}

}  // namespace attendant::server
