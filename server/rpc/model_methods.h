// Methods of EncoderService about models and registered memories.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/request/inline_method.h"

namespace attendant::server {

// Each is an InlineMethod. The response of GetTokenizer shares the tokenizer's bytes with the
// model.
absl::StatusOr<grpc::ByteBuffer> ListModels(const MethodContext& context,
                                            const grpc::ByteBuffer& message, std::string& model);
absl::StatusOr<grpc::ByteBuffer> GetModel(const MethodContext& context,
                                          const grpc::ByteBuffer& message, std::string& model);
absl::StatusOr<grpc::ByteBuffer> GetTokenizer(const MethodContext& context,
                                              const grpc::ByteBuffer& message, std::string& model);
absl::StatusOr<grpc::ByteBuffer> DropMemory(const MethodContext& context,
                                            const grpc::ByteBuffer& message, std::string& model);

}  // namespace attendant::server
