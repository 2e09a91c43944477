// The credentials of the gRPC port: TLS and tokens, or neither.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/server_secrets.h"

namespace attendant::server {

// Every call, except those of grpc.health.v1.Health, needs a token for TokenScope::kInfer if there
// are tokens. A call without it ends at its headers, before any part of the service sees it, with
// UNAUTHENTICATED or PERMISSION_DENIED.
//
// The result must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets);

}  // namespace attendant::server
