// The address of a server, as users write it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace attendant::client {

struct Address {
  std::string target;  // for gRPC
  bool tls = false;    // whether it requests TLS
};

// Parses an address. "http://host:port" and "grpc://host:port" mean host:port; "https://" and
// "grpcs://" add TLS. gRPC resolves anything else ("host:port", "dns:///host:port", "unix:/path").
// Returns INVALID_ARGUMENT for a host or URL without a port or with a wrong one, or with a path.
absl::StatusOr<Address> ReadAddress(const std::string& address);

}  // namespace attendant::client
