// Locates the files that hold the limits of this process's control groups; see cgroups(7).
#pragma once

#include <string>
#include <vector>

namespace attendant {

struct CgroupFiles {
  std::string root = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
};

// Returns the directories whose limits of `controller` ("cpu" or "memory") apply to this process:
// those of its group, of each parent group and of the root, in the hierarchies of cgroups v1 and
// v2. Some may not exist: a container often sees its own group as the root.
std::vector<std::string> CgroupFolders(const CgroupFiles& files, const std::string& controller);

}  // namespace attendant
