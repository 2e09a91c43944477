// The certificates and tokens of the server's doors, gRPC and HTTP.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/security/certificates.h"
#include "server/security/reloaded.h"
#include "server/security/tokens.h"

namespace attendant::server {

class ServerMetrics;

// The credentials that a port presents and asks for. Everything behind the pointers outlives the
// server.
struct ServerSecrets {
  // Null: connections are not encrypted. Otherwise they are TLS 1.2 or newer, callers need a
  // certificate if there is a client CA, except for what tells the health of the server, and each
  // handshake uses the newest certificates.
  const Reloaded<Certificates>* certificates = nullptr;
  // Null: calls need no token. Otherwise they need one for their TokenScope, except for what tells
  // the health of the server.
  const Reloaded<Tokens>* tokens = nullptr;
  ServerMetrics* metrics = nullptr;  // which count what Identify refuses; null: nothing does

  // Whether callers need a certificate. Does not change while the server runs.
  bool NeedCertificates() const {
    return certificates != nullptr && !certificates->current()->client_ca.empty();
  }

  // As Tokens::Identify; an empty name if there are no tokens.
  absl::StatusOr<std::string> Identify(absl::string_view authorization, TokenScope scope) const;
};

}  // namespace attendant::server
