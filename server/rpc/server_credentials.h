// The credentials of the gRPC port: with or without TLS.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/certificates.h"
#include "server/security/reloaded.h"

namespace attendant::server {

// Without certificates (null) connections are not encrypted. With them they are TLS 1.2 or newer,
// callers need a certificate if there is a client CA, and each handshake uses the newest
// certificates. The result, and what the pointers refer to, must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const Reloaded<Certificates>* certificates);

}  // namespace attendant::server
