// The methods that answer from what the server knows, without a job: ListModels, GetModel,
// GetTokenizer and DropMemory.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/models/model_lookup.h"
#include "server/request/service_context.h"

namespace attendant::server {

class ModelMethods {
 public:
  // `context` outlives it.
  explicit ModelMethods(const ServiceContext& context) : context_(context) {}

  // Each takes and returns a message, and names the served model that it is about, if any. Any
  // thread.
  absl::StatusOr<grpc::ByteBuffer> ListModels(const grpc::ByteBuffer& message,
                                              std::string& model) const;
  absl::StatusOr<grpc::ByteBuffer> GetModel(const grpc::ByteBuffer& message,
                                            std::string& model) const;
  // The answer shares the tokenizer's bytes with the model.
  absl::StatusOr<grpc::ByteBuffer> GetTokenizer(const grpc::ByteBuffer& message,
                                                std::string& model) const;
  absl::StatusOr<grpc::ByteBuffer> DropMemory(const grpc::ByteBuffer& message,
                                              std::string& model) const;

 private:
  // Finds the model that a request names. NOT_FOUND tells of versions that are refused.
  FoundModel Find(const std::string& name) const;

  const ServiceContext& context_;
};

}  // namespace attendant::server
