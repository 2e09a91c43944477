// From a received message to a request that can be queued.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/services/compute_request.h"
#include "server/services/encoder_service.h"

namespace attendant::server {

struct PreparedRequest {
  ComputeRequest compute;
  int64_t bytes = 0;  // of message, answer and scratch
};

struct PreparedItem {
  uint64_t id = 0;
  absl::StatusOr<PreparedRequest> request;
};

// An AttendRequest; an EncodeRequest; a PutMemoryRequest. The tensors' data stays where it arrived.
absl::StatusOr<PreparedRequest> PrepareAttend(const grpc::ByteBuffer& message,
                                              const ServiceContext& context);
absl::StatusOr<PreparedRequest> PrepareEncode(const grpc::ByteBuffer& message,
                                              const ServiceContext& context);

absl::StatusOr<PreparedRequest> PreparePutMemory(const grpc::ByteBuffer& message,
                                                 const ServiceContext& context);

// An EncodeStreamRequest. INVALID_ARGUMENT: it is malformed, so that even its id is not known.
absl::StatusOr<PreparedItem> PrepareItem(const grpc::ByteBuffer& message,
                                         const ServiceContext& context);

}  // namespace attendant::server
