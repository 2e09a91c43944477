#include "server/services/request_intake.h"

#include <utility>
#include <vector>

#include "server/services/request_validation.h"
#include "server/services/status_mapping.h"

namespace attendant::server {
namespace {

// Room for the names, shapes and gates, and for `lengths`, of the request and of its memory, and
// `query_rows`, of which there are at most as many as tokens.
int64_t MaxHeadBytes(const ServiceLimits& limits) {
  return (int64_t{64} << 10) + 12 * limits.max_request_tokens;
}

// Validates the request of a message of `message_bytes`.
template <typename Request>
absl::StatusOr<PreparedRequest> Prepare(const Request& request, const RequestPayloads& payloads,
                                        int64_t message_bytes, const ServiceContext& context) {
  absl::StatusOr<ComputeRequest> compute =
      Validate(request, payloads, {context.models, context.limits, context.memories});
  if (!compute.ok()) return compute.status();
  absl::StatusOr<RequestBytes> bytes = PredictBytes(*compute, context.limits.max_answer_bytes);
  if (!bytes.ok()) return bytes.status();
  return PreparedRequest{*std::move(compute), message_bytes + bytes->answer + bytes->scratch};
}

template <typename Request>
absl::StatusOr<PreparedRequest> ParseAndPrepare(const grpc::ByteBuffer& message,
                                                const ServiceContext& context) {
  Request request;
  auto payloads = ParseRequest(message, MaxHeadBytes(context.limits), request);
  if (!payloads.ok()) return payloads.status();
  return Prepare(request, RequestPayloads(*payloads, {}), static_cast<int64_t>(message.Length()),
                 context);
}

}  // namespace

absl::StatusOr<PreparedRequest> PrepareAttend(const grpc::ByteBuffer& message,
                                              const ServiceContext& context) {
  return ParseAndPrepare<v1::AttendRequest>(message, context);
}

absl::StatusOr<PreparedRequest> PrepareEncode(const grpc::ByteBuffer& message,
                                              const ServiceContext& context) {
  return ParseAndPrepare<v1::EncodeRequest>(message, context);
}

absl::StatusOr<PreparedRequest> PreparePutMemory(const grpc::ByteBuffer& message,
                                                 const ServiceContext& context) {
  return ParseAndPrepare<v1::PutMemoryRequest>(message, context);
}

absl::StatusOr<PreparedItem> PrepareItem(const grpc::ByteBuffer& message,
                                         const ServiceContext& context) {
  v1::EncodeStreamRequest item;
  auto payloads = ParseRequest(message, MaxHeadBytes(context.limits), item);
  if (!payloads.ok()) return payloads.status();
  if (!item.has_request()) {
    return PreparedItem{item.id(), Refusal("request", "an EncodeRequest", "none")};
  }
  const RequestPayloads inner(*payloads, {v1::EncodeStreamRequest::kRequestFieldNumber});
  return PreparedItem{
      item.id(), Prepare(item.request(), inner, static_cast<int64_t>(message.Length()), context)};
}

}  // namespace attendant::server
