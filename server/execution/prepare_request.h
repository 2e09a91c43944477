// Turns a received message into a request for the queue.
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
  std::function<grpc::ByteBuffer(Response)> to_message = {};  // serializes the response
  absl::Duration timeout = absl::InfiniteDuration();          // requested by the message
};

// A request, or a response that needs no queue.
using Prepared = std::variant<PreparedCompute, grpc::ByteBuffer>;

// A parsed message that is yet to be prepared.
struct Preparation {
  // Memory needed to prepare it, which is slow and belongs on a worker; 0 if it is quick.
  int64_t tokenizing_bytes = 0;
  // Call once, with the name of the client (ComputeRequest::client). `context` must outlive it.
  absl::AnyInvocable<absl::StatusOr<Prepared>(const std::string& client)> prepare = {};
};

template <typename Request>
struct Received {
  Request request;  // without tensor data
  PayloadsByPath payloads;
  int64_t bytes = 0;  // of the message
};

using StreamItem = Received<v1::EncodeStreamRequest>;

// AttendRequest, EncodeRequest, PutMemoryRequest and TokenizeRequest. Tensor data and texts are not
// copied.
absl::StatusOr<Preparation> PrepareAttend(const grpc::ByteBuffer& message,
                                          const ServiceContext& context);
absl::StatusOr<Preparation> PrepareEncode(const grpc::ByteBuffer& message,
                                          const ServiceContext& context);
absl::StatusOr<Preparation> PreparePutMemory(const grpc::ByteBuffer& message,
                                             const ServiceContext& context);
absl::StatusOr<Preparation> PrepareTokenize(const grpc::ByteBuffer& message,
                                            const ServiceContext& context);

// Adds the memory of a request with a message of `message_bytes`. Returns the error of `compute`,
// if any. The caller sets `to_message`.
absl::StatusOr<PreparedCompute> PrepareRequest(absl::StatusOr<ComputeRequest> compute,
                                               int64_t message_bytes,
                                               const ServiceContext& context);

// Returns INVALID_ARGUMENT if the message is malformed, so that even its id is unknown.
absl::StatusOr<StreamItem> ReceiveItem(const grpc::ByteBuffer& message,
                                       const ServiceContext& context);

// Returns Preparation::tokenizing_bytes for PrepareItem.
int64_t TokenizingBytes(const StreamItem& item, const ServiceContext& context);

// `client` and `sequence` are as in ParseRequest.
absl::StatusOr<PreparedCompute> PrepareItem(const StreamItem& item, const std::string& client,
                                            const std::shared_ptr<StreamSequence>& sequence,
                                            const ServiceContext& context);

}  // namespace attendant::server
