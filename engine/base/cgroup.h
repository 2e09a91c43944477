// Locates the files that hold the limits of this process's control groups; see cgroups(7).
#pragma once

#include <string>
#include <vector>

namespace attendant {

struct CgroupFiles {
  std::string root = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
};

// Returns the directories with the limits of `controller` ("cpu" or "memory") for this process.
// They belong to its group, each parent group and the root, in the hierarchies of cgroups v1 and
// v2. Some may not exist: a container often sees its own group as the root.
std::vector<std::string> CgroupFolders(const CgroupFiles& files, const std::string& controller);

}  // namespace attendant
