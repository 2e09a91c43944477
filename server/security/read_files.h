// Reads small files, such as certificates.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::server {

// Returns the contents of all files. An error names the file that cannot be read or exceeds 1 MiB.
absl::StatusOr<std::vector<std::string>> ReadFiles(const std::vector<std::string>& paths);

}  // namespace attendant::server
