// The credentials of the gRPC port: TLS and tokens, or neither.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/certificates.h"
#include "server/security/reloaded.h"
#include "server/security/tokens.h"

namespace attendant::server {

// What the door asks for. What the pointers refer to must outlive the server.
struct ServerSecrets {
  // Null: connections are not encrypted. Otherwise they are TLS 1.2 or newer, callers need a
  // certificate if there is a client CA, and each handshake uses the newest certificates.
  const Reloaded<Certificates>* certificates = nullptr;
  // Null: calls need no token. Otherwise every call, except those of grpc.health.v1.Health, needs
  // one for TokenScope::kInfer. A call without it ends at its headers, before any part of the
  // service sees it, with UNAUTHENTICATED or PERMISSION_DENIED.
  const Reloaded<Tokens>* tokens = nullptr;
};

// The result must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets);

}  // namespace attendant::server
