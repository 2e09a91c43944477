// From a received message to a request that can be queued.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/execution/response.h"
#include "server/request/compute_request.h"
#include "server/request/parse_request.h"
#include "server/request/service_context.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

struct PreparedCompute {
  ComputeRequest request;
  int64_t bytes = 0;                                          // of message, response and scratch
  std::function<grpc::ByteBuffer(Response)> to_message = {};  // the wire form of the response
  absl::Duration timeout = absl::InfiniteDuration();          // that the message asks for
};

// A request, or an answer that needs no queue.
using Prepared = std::variant<PreparedCompute, grpc::ByteBuffer>;

// A message that has been read, and waits to be prepared.
struct Preparation {
  // The bytes that are taken meanwhile, if it takes long and is to be done on a worker; 0: it is
  // quick.
  int64_t tokenizing_bytes = 0;
  // To be called once, with the name of the client (ComputeRequest::client). `context` outlives it.
  absl::AnyInvocable<absl::StatusOr<Prepared>(const std::string& client)> prepare = {};
};

// An EncodeStreamRequest.
struct StreamItem {
  v1::EncodeStreamRequest message;  // without the tensors' data
  std::vector<TensorPayload> payloads;
  int64_t bytes = 0;  // of the message
  absl::Time arrived;
};

// An AttendRequest; an EncodeRequest; a PutMemoryRequest; a TokenizeRequest. The data of tensors
// and texts stays where it arrived.
absl::StatusOr<Preparation> PrepareAttend(const grpc::ByteBuffer& message,
                                          const ServiceContext& context);
absl::StatusOr<Preparation> PrepareEncode(const grpc::ByteBuffer& message,
                                          const ServiceContext& context);
absl::StatusOr<Preparation> PreparePutMemory(const grpc::ByteBuffer& message,
                                             const ServiceContext& context);
absl::StatusOr<Preparation> PrepareTokenize(const grpc::ByteBuffer& message,
                                            const ServiceContext& context);

// Adds the bytes that a request takes, of which `message_bytes` are its message. Returns the error
// if `compute` is one. The caller sets `to_message`.
absl::StatusOr<PreparedCompute> PrepareRequest(absl::StatusOr<ComputeRequest> compute,
                                               int64_t message_bytes,
                                               const ServiceContext& context);

// INVALID_ARGUMENT: it is malformed, so that even its id is not known.
absl::StatusOr<StreamItem> ReceiveItem(const grpc::ByteBuffer& message,
                                       const ServiceContext& context);

// As Preparation::tokenizing_bytes, of PrepareItem.
int64_t TokenizingBytes(const StreamItem& item, const ServiceContext& context);

absl::StatusOr<PreparedCompute> PrepareItem(const StreamItem& item, const EncodeOrigin& origin,
                                            const ServiceContext& context);

}  // namespace attendant::server
