// The implementation of LoadStream, on gRPC's callback interface.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <memory>

#include "client/load_stream.h"

namespace attendant::client {

// The timeout of `call` bounds each request.
std::unique_ptr<LoadStream> MakeLoadStream(std::shared_ptr<grpc::GenericStub> stub,
                                           const CallOptions& call);

}  // namespace attendant::client
