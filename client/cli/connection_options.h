// ConnectionOptions, the flags of attendant-client for TLS, tokens and proxies.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/flags/flag.h"

namespace attendant::client {

class ConnectionOptions {
 public:
  // Returns the flags, which write into this object.
  Flags ConnectionFlags();

  // Reads the files. The error names the one that cannot be read.
  absl::StatusOr<ClientOptions> Read() const;

 private:
  std::string tls_ca_;
  std::string tls_certificate_;
  std::string tls_key_;
  std::string token_file_;
  bool proxy_ = false;
};

// Reads a file with one bearer token. The error names the file; INVALID_ARGUMENT: it holds
// something else.
absl::StatusOr<std::string> ReadToken(const std::string& path);

}  // namespace attendant::client
