// ServerSecrets, the certificates and tokens of the gRPC and HTTP ports.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/security/certificates.h"
#include "server/security/reloaded.h"
#include "server/security/tokens.h"

namespace attendant::server {

class ServerMetrics;

// The credentials that a port presents and requires. The pointees must outlive the server.
struct ServerSecrets {
  // Null: connections are unencrypted. Otherwise they require TLS 1.2 or later and, with a client
  // CA, a client certificate, except for health checks; each handshake uses the newest
  // certificates.
  const Reloaded<Certificates>* certificates = nullptr;
  // Null: calls need no token. Otherwise they need one for their TokenScope, except for health
  // checks.
  const Reloaded<Tokens>* tokens = nullptr;
  ServerMetrics* metrics = nullptr;  // counts refusals of Identify; may be null

  // Returns whether clients need a certificate. Constant while the server runs.
  bool NeedCertificates() const {
    return certificates != nullptr && !certificates->current()->client_ca.empty();
  }

  // See Tokens::Identify; returns an empty name if there are no tokens.
  absl::StatusOr<std::string> Identify(absl::string_view authorization, TokenScope scope) const;
};

}  // namespace attendant::server
