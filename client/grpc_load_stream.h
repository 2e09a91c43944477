// The stream that Client::OpenLoadStream returns.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <memory>

#include "client/load_stream.h"

namespace attendant::client {

std::unique_ptr<LoadStream> MakeLoadStream(std::shared_ptr<grpc::GenericStub> stub,
                                           const CallOptions& call);

}  // namespace attendant::client
