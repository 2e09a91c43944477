// The credentials of the gRPC port's connections: TLS, or none.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/server_secrets.h"

namespace attendant::server {

// Each handshake uses the newest certificates. If there is a client CA, callers may show a
// certificate; one that the CA has not signed, or that has expired, fails the handshake. Whether a
// caller may call without one is CallEntrance's to say.
//
// The result must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets);

}  // namespace attendant::server
