// Adds a bearer token to the calls of a channel.
#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <memory>
#include <string>

namespace attendant::client {

// Returns the factory of interceptors that send `token` with each call. An interceptor does this
// without TLS too, unlike gRPC's call credentials.
std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> SendToken(
    const std::string& token);

}  // namespace attendant::client
