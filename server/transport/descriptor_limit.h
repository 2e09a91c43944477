// The limit on open file descriptors, which bounds the number of connections.
#pragma once

#include <cstdint>

namespace attendant::server {

// Raises the process's soft limit on open descriptors to its hard limit, and returns the resulting
// limit.
int64_t RaiseDescriptorLimit();

// Returns the maximum number of connections for a process that may open `descriptors`; at least 1.
// A connection takes two descriptors, gRPC's and a duplicate for counting; half of all descriptors
// are left for files, the HTTP port and libraries.
int64_t MostConnections(int64_t descriptors);

}  // namespace attendant::server
