// ScanRepository: lists the folders of a model repository.
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
  std::string files;  // names, sizes and times of all files below: differs if any has changed
};

struct RepositoryScan {
  // By the model's name, the newest version first. Models without any are left out.
  std::map<std::string, std::vector<VersionFolder>> models;
  // What is neither a model nor a version, and why, for the log. Hidden names are not listed.
  std::vector<std::string> ignored;
};

// Returns VersionFolder::files of a folder as it is now.
std::string ListFiles(const std::string& folder);

// Reads names and attributes of files, but no file. The name of a model, NAME or ORG/NAME, is one
// that --model would take, that of a version a positive integer without leading zeros. Symbolic
// links are followed. UNAVAILABLE: a folder of the repository or of a model could not be listed. A
// version whose files cannot be listed is there; opening it will tell why.
absl::StatusOr<RepositoryScan> ScanRepository(const std::string& repository);

}  // namespace attendant::server
