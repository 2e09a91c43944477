// The certificates and tokens of the server's doors, gRPC and HTTP.
#pragma once

#include "server/security/certificates.h"
#include "server/security/reloaded.h"
#include "server/security/tokens.h"

namespace attendant::server {

// What a door asks for. What the pointers refer to must outlive the server.
struct ServerSecrets {
  // Null: connections are not encrypted. Otherwise they are TLS 1.2 or newer, callers need a
  // certificate if there is a client CA, and each handshake uses the newest certificates.
  const Reloaded<Certificates>* certificates = nullptr;
  // Null: calls need no token. Otherwise they need one for their TokenScope, except for what tells
  // the health of the server.
  const Reloaded<Tokens>* tokens = nullptr;
};

}  // namespace attendant::server
