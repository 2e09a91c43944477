// The file in which a server that is ready tells its ports.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace attendant::server {

// INVALID_ARGUMENT if a file cannot be made there; OK for an empty path. Makes nothing.
absl::Status CheckPortFile(const std::string& path);

// Writes the ports, or nothing if the path is empty. No reader ever sees part of the file.
// INVALID_ARGUMENT if it cannot be written.
absl::Status WritePortFile(const std::string& path, int port, int http_port);

}  // namespace attendant::server
