// The files that hold the limits of this process's control groups: cgroups(7).
#pragma once

#include <string>
#include <vector>

namespace attendant {

struct CgroupFiles {
  std::string root = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
};

// The folders whose limits by `controller` ("cpu", "memory") hold for this process: of its own
// group, of each one around it, and the root's, in either version's hierarchy. Some may not exist:
// a container often sees its own group as the root.
std::vector<std::string> CgroupFolders(const CgroupFiles& files, const std::string& controller);

}  // namespace attendant
