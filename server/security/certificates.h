// Certificates, by which the server proves who it is and checks who calls.
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
  std::string client_ca;  // empty: callers need no certificate
  // When the first of the chain expires; not given, but found in it.
  absl::Time expiry = absl::InfiniteFuture();
};

// Makes them from the texts of a chain, its key and, if callers need a certificate, the
// certificates that may have signed theirs. INVALID_ARGUMENT, naming the flag, if a text is not PEM
// of its kind, if the key has a password, or if the key is not that of the certificate.
absl::StatusOr<Certificates> CheckCertificates(const std::vector<std::string>& texts);

}  // namespace attendant::server
