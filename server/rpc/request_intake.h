// From a received message to a request that can be queued.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/request/compute_request.h"
#include "server/request/registration_request.h"
#include "server/request/service_context.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

template <typename Request>
struct Prepared {
  Request request;
  int64_t bytes = 0;  // of message, response and scratch
};

// An EncodeStreamRequest.
struct StreamItem {
  v1::EncodeStreamRequest message;  // without the tensors' data
  std::vector<TensorPayload> payloads;
  int64_t bytes = 0;  // of the message
  absl::Time arrived;
};

// An AttendRequest; an EncodeRequest; a PutMemoryRequest. The tensors' data stays where it arrived.
absl::StatusOr<Prepared<ComputeRequest>> PrepareAttend(const grpc::ByteBuffer& message,
                                                       const ServiceContext& context);
absl::StatusOr<Prepared<ComputeRequest>> PrepareEncode(const grpc::ByteBuffer& message,
                                                       const ServiceContext& context);
absl::StatusOr<Prepared<RegistrationRequest>> PreparePutMemory(const grpc::ByteBuffer& message,
                                                               const ServiceContext& context);

// INVALID_ARGUMENT: it is malformed, so that even its id is not known.
absl::StatusOr<StreamItem> ReceiveItem(const grpc::ByteBuffer& message,
                                       const ServiceContext& context);

// `sequence` is the one that the item is a chunk of, or null.
absl::StatusOr<Prepared<ComputeRequest>> PrepareItem(
    const StreamItem& item, const std::shared_ptr<StreamSequence>& sequence,
    const ServiceContext& context);

}  // namespace attendant::server
