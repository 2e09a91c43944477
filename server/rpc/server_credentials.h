// Credentials of gRPC connections: TLS or insecure.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/server_secrets.h"

namespace attendant::server {

// Each handshake uses the newest certificates. With a client CA, clients may present a certificate;
// the handshake fails if the CA has not signed it or it has expired. CallDispatcher decides whether
// a client may call without one.
//
// The result must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets);

}  // namespace attendant::server
