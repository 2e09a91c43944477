// Adds a bearer token to the calls of a channel.
#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <memory>
#include <string>

namespace attendant::client {

// Returns a factory of interceptors that send `token` with each call. Unlike gRPC's call
// credentials, they also do so without TLS.
std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> SendToken(
    const std::string& token);

}  // namespace attendant::client
