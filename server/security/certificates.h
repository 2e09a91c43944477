// Certificates, with which the server identifies itself and verifies clients.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant::server {

// PEM texts. The key belongs to the first certificate of the chain.
struct Certificates {
  std::string chain;
  std::string key;
  std::string client_ca;  // empty: no client certificates
  // Earliest expiry in the chain; read from it, not given.
  absl::Time expiry = absl::InfiniteFuture();
};

// Parses the texts of a chain, its key and, for client certificates, the CA certificates. Returns
// INVALID_ARGUMENT with the flag if a text is not PEM of its kind, the key has a password, or the
// key does not match the certificate.
absl::StatusOr<Certificates> CheckCertificates(const std::vector<std::string>& texts);

}  // namespace attendant::server
