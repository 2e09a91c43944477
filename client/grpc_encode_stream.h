// The implementation of EncodeStream, on the generated stub.
#pragma once

#include <grpcpp/client_context.h>

#include <memory>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "client/encode_stream.h"

namespace attendant::client {

// Opens the stream, which owns the context. The stub may be destroyed afterwards.
std::unique_ptr<EncodeStream> MakeEncodeStream(v1::EncoderService::Stub& stub,
                                               std::unique_ptr<grpc::ClientContext> context);

}  // namespace attendant::client
