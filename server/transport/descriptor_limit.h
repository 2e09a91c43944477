// The limit of open file descriptors, which bounds the number of connections.
#pragma once

#include <cstdint>

namespace attendant::server {

// Raises the process's soft limit of open descriptors to its hard limit, and returns the limit that
// then applies.
int64_t RaiseDescriptorLimit();

// Returns how many connections a process may hold that may open `descriptors`. A connection takes
// two descriptors, one of gRPC and one by which it is counted; connections leave half of all
// descriptors to files, to the HTTP port and to the libraries. At least 1.
int64_t MostConnections(int64_t descriptors);

}  // namespace attendant::server
