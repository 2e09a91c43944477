#include "engine/base/cgroup.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attendant {
namespace {

// A parsed line of the membership file.
struct Membership {
  bool is_wanted = false;  // false if the line is for other controllers
  std::string hierarchy;   // directory of the controller's hierarchy in v1; empty in v2
  std::string path;        // of the group, relative to it: "/system.slice/x.service"
};

// "4:cpu,cpuacct:/path" in v1, "0::/path" in v2.
Membership Parse(const std::string& line, const std::string& controller) {
  const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (parts.size() != 3 || parts[2].find("/..") != std::string::npos) return {};
  if (parts[1].empty()) return {true, "", parts[2]};
  const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
  const bool is_wanted = std::count(controllers.begin(), controllers.end(), controller) > 0;
  return {is_wanted, absl::StrCat("/", controller), parts[2]};
}

}  // namespace

std::vector<std::string> CgroupFolders(const CgroupFiles& files, const std::string& controller) {
  std::vector<std::string> folders = {files.root, absl::StrCat(files.root, "/", controller)};
  std::ifstream memberships(files.membership);
  for (std::string line; std::getline(memberships, line);) {
    Membership membership = Parse(line, controller);
    if (!membership.is_wanted) continue;
    std::string& path = membership.path;
    for (; path.size() > 1; path.resize(path.rfind('/'))) {
      folders.push_back(absl::StrCat(files.root, membership.hierarchy, path));
    }
  }
  return folders;
}

}  // namespace attendant
