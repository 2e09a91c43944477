// The address of a server, as people write it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace attendant::client {

struct Address {
  std::string target;  // for gRPC
  bool tls = false;    // whether it asks for TLS
};

// Reads an address. URLs are taken as what they mean: "http://host:port" and "grpc://host:port" as
// host:port, "https://" and "grpcs://" as the same over TLS. All else is for gRPC to resolve
// ("host:port", "dns:///host:port", "unix:/path"). INVALID_ARGUMENT: a URL without a port, or with
// a path.
absl::StatusOr<Address> ReadAddress(const std::string& address);

}  // namespace attendant::client
