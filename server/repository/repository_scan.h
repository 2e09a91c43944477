// ScanRepository, which lists the directories of a model repository.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::server {

// A checkpoint in <repository>/<name>/<version>; the name may have one slash.
struct VersionFolder {
  int64_t version = 0;  // positive
  std::string path;
  // Names, sizes, times and permissions of all files below; changes if any file does.
  std::string files;
};

struct RepositoryScan {
  // By the model's name, newest version first. Models without versions are omitted.
  std::map<std::string, std::vector<VersionFolder>> models;
  // Entries that are neither a model nor a version, and why, for the log. Hidden names are omitted.
  std::vector<std::string> ignored;
};

// Returns the current VersionFolder::files of a directory.
std::string ListFiles(const std::string& folder);

// Reads the names and attributes of files, but not their contents. A model's name, NAME or
// ORG/NAME, must be valid for --model; a version's is a positive integer without leading zeros.
// Follows symbolic links. Returns UNAVAILABLE if the directory of the repository or of a model
// cannot be listed. A version with unlistable files is included; opening it reports the reason.
absl::StatusOr<RepositoryScan> ScanRepository(const std::string& repository);

}  // namespace attendant::server
