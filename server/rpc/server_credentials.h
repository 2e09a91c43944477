// The credentials of the gRPC port: TLS, certificates of callers, tokens, or none of them.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/server_secrets.h"

namespace attendant::server {

// Every call, except those of grpc.health.v1.Health, needs a connection on which the caller has
// shown a certificate, if there is a client CA, and a token for TokenScope::kInfer, if there are
// tokens. A call without them ends at its headers, before any part of the service sees it, with
// UNAUTHENTICATED or PERMISSION_DENIED. A certificate that the client CA has not signed, or that
// has expired, fails the handshake.
//
// The result must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets);

}  // namespace attendant::server
