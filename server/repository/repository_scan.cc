#include "server/repository/repository_scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/settings/model_name.h"

namespace attendant::server {
namespace {

namespace fs = std::filesystem;

// Symbolic links may form a circle.
constexpr int kMostDepth = 8;

using Names = absl::StatusOr<std::vector<std::string>>;

// Returns the names in a folder, sorted.
Names List(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<int64_t> ParseVersion(const std::string& name) {
  int64_t version = 0;
  if (!absl::SimpleAtoi(name, &version) || version <= 0 || absl::StrCat(version) != name) {
    return std::nullopt;
  }
  return version;
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

void DescribeFiles(const std::string& folder, int depth, std::string& out) {
  const Names names = List(folder);
  if (!names.ok()) {
    absl::StrAppend(&out, names.status().message(), "\n");
    return;
  }
  for (const std::string& name : *names) {
    const std::string path = folder + "/" + name;
    struct stat file = {};
    if (stat(path.c_str(), &file) != 0) {
      absl::StrAppend(&out, path, " is missing\n");
      continue;
    }
    absl::StrAppend(&out, path, " ", file.st_size, " ", file.st_mtim.tv_sec, ".",
                    file.st_mtim.tv_nsec, " ", file.st_ino, " ", file.st_mode, " ", file.st_uid,
                    " ", file.st_gid, "\n");
    if (S_ISDIR(file.st_mode) && depth < kMostDepth) DescribeFiles(path, depth + 1, out);
  }
}

// Hidden, or what ext4 has at the root of a volume.
bool IsHidden(const std::string& name) { return name[0] == '.' || name == "lost+found"; }

// Adds the model in the folder `name`, if that has versions, or else the models in it, as in the
// folder of an organization.
absl::Status ScanFolder(const std::string& repository, const std::string& name,
                        RepositoryScan& scan) {
  const std::string folder = repository + "/" + name;
  ASSIGN_OR_RETURN(const auto entries, List(folder));
  std::vector<VersionFolder> versions;
  std::vector<std::string> members, others;
  for (const std::string& entry : entries) {
    if (IsHidden(entry)) continue;
    const std::string path = folder + "/" + entry;
    const bool is_folder = IsFolder(path);
    if (const auto number = ParseVersion(entry); number && is_folder) {
      versions.push_back({*number, path, ListFiles(path)});
    } else {
      (is_folder && IsModelName(entry) ? members : others).push_back(entry);
    }
  }
  const size_t models_before = scan.models.size();
  if (versions.empty() && !absl::StrContains(name, '/')) {
    for (const std::string& member : std::exchange(members, {})) {
      RETURN_IF_ERROR(ScanFolder(repository, name + "/" + member, scan));
    }
  }
  others.insert(others.end(), members.begin(), members.end());
  // Reports a directory that is not a model once, instead of once for each of its files.
  const bool is_other = versions.empty() && scan.models.size() == models_before;
  if (is_other && !others.empty()) others = {"*"};
  for (const std::string& entry : others) {
    scan.ignored.push_back(absl::StrCat(
        folder, "/", entry,
        ": expected a directory whose name is a positive integer without leading zeros"));
  }
  std::sort(versions.begin(), versions.end(),
            [](const auto& a, const auto& b) { return a.version > b.version; });
  if (!versions.empty()) scan.models[name] = std::move(versions);
  return absl::OkStatus();
}

}  // namespace

std::string ListFiles(const std::string& folder) {
  std::string files;
  DescribeFiles(folder, 0, files);
  return files;
}

absl::StatusOr<RepositoryScan> ScanRepository(const std::string& repository) {
  ASSIGN_OR_RETURN(const auto names, List(repository));
  RepositoryScan scan;
  for (const std::string& name : names) {
    if (IsHidden(name)) continue;
    const std::string path = repository + "/" + name;
    if (!IsModelName(name) || !IsFolder(path)) {
      scan.ignored.push_back(absl::StrCat(path, ": expected a directory with ", kModelNameRule));
      continue;
    }
    RETURN_IF_ERROR(ScanFolder(repository, name, scan));
  }
  return scan;
}

}  // namespace attendant::server
