// The file to which a ready server writes its ports.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace attendant::server {

// Returns INVALID_ARGUMENT if a file cannot be created there; OK for an empty path. Creates
// nothing.
absl::Status CheckPortFile(const std::string& path);

// Writes the ports atomically, or nothing if the path is empty. Returns INVALID_ARGUMENT if it
// cannot be written.
absl::Status WritePortFile(const std::string& path, int port, int http_port);

}  // namespace attendant::server
