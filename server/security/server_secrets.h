// The certificates and tokens of the server's doors, gRPC and HTTP.
#pragma once

#include <string>

#include "absl/status/status.h"
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
  ServerMetrics* metrics = nullptr;  // which count what CheckToken refuses; null: nothing does

  // Checks the value of an `authorization` header, as Tokens::Check; OK if there are no tokens.
  absl::Status CheckToken(absl::string_view authorization, TokenScope scope) const;

  // As Tokens::NameOf; empty if there are no tokens.
  std::string NameOfToken(absl::string_view authorization) const;
};

}  // namespace attendant::server
