#include "server/execution/prepare_request.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/request/parse_request.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Room for the names, shapes and gates, and for `lengths`, of the request and of its `memory`, and
// `query_rows`, of which there are at most as many as tokens.
int64_t MaxHeadBytes(const ServiceLimits& limits) {
  return (int64_t{64} << 10) + 12 * limits.max_request_tokens;
}

template <typename Request, auto ToMessage>
absl::StatusOr<PreparedCompute> ParseAndPrepare(const grpc::ByteBuffer& message,
                                                const ServiceContext& context) {
  Request request;
  auto payloads = ParseRequest(message, MaxHeadBytes(context.limits), request);
  if (!payloads.ok()) return payloads.status();
  absl::StatusOr<PreparedCompute> prepared =
      PrepareRequest(ParseRequest(request, RequestPayloads(*payloads, {}), context),
                     static_cast<int64_t>(message.Length()), context);
  if (prepared.ok()) prepared->to_message = ToMessage;
  return prepared;
}

// Checks that `first_token` and `ends` of an item fit its sequence.
absl::Status CheckPosition(const v1::EncodeStreamRequest& item, const StreamSequence* sequence) {
  if (sequence == nullptr) {
    if (item.has_first_token()) {
      return InvalidField("first_token", "none without a sequence",
                          absl::StrCat(item.first_token()));
    }
    return item.ends() ? InvalidField("ends", "false without a sequence", "true")
                       : absl::OkStatus();
  }
  if (!item.has_first_token() ||
      item.first_token() == static_cast<uint64_t>(sequence->tokens().all)) {
    return absl::OkStatus();
  }
  return InvalidField("first_token",
                      absl::StrCat(sequence->tokens().all, ", as many tokens as sequence ",
                                   sequence->number(), " has so far"),
                      absl::StrCat(item.first_token()));
}

}  // namespace

absl::StatusOr<PreparedCompute> PrepareRequest(absl::StatusOr<ComputeRequest> compute,
                                               int64_t message_bytes,
                                               const ServiceContext& context) {
  if (!compute.ok()) return compute.status();
  absl::StatusOr<RequestBytes> bytes = PredictBytes(*compute, context.limits.max_answer_bytes);
  if (!bytes.ok()) return bytes.status();
  return PreparedCompute{*std::move(compute), message_bytes + bytes->response + bytes->scratch};
}

absl::StatusOr<PreparedCompute> PrepareAttend(const grpc::ByteBuffer& message,
                                              const ServiceContext& context) {
  return ParseAndPrepare<v1::AttendRequest, ToAttendResponse>(message, context);
}

absl::StatusOr<PreparedCompute> PrepareEncode(const grpc::ByteBuffer& message,
                                              const ServiceContext& context) {
  return ParseAndPrepare<v1::EncodeRequest, ToEncodeResponse>(message, context);
}

absl::StatusOr<PreparedCompute> PreparePutMemory(const grpc::ByteBuffer& message,
                                                 const ServiceContext& context) {
  return ParseAndPrepare<v1::PutMemoryRequest, ToPutMemoryResponse>(message, context);
}

absl::StatusOr<StreamItem> ReceiveItem(const grpc::ByteBuffer& message,
                                       const ServiceContext& context) {
  StreamItem item;
  item.arrived = context.clock.Now();
  auto payloads = ParseRequest(message, MaxHeadBytes(context.limits), item.message);
  if (!payloads.ok()) return payloads.status();
  item.payloads = *std::move(payloads);
  item.bytes = static_cast<int64_t>(message.Length());
  return item;
}

absl::StatusOr<PreparedCompute> PrepareItem(const StreamItem& item,
                                            const std::shared_ptr<StreamSequence>& sequence,
                                            const ServiceContext& context) {
  const v1::EncodeStreamRequest& message = item.message;
  if (!message.has_request()) return InvalidField("request", "an EncodeRequest", "none");
  absl::Status status = CheckPosition(message, sequence.get());
  if (!status.ok()) return status;
  const RequestPayloads payloads(item.payloads, {v1::EncodeStreamRequest::kRequestFieldNumber});
  absl::StatusOr<PreparedCompute> prepared = PrepareRequest(
      ParseRequest(message.request(), payloads, context, sequence), item.bytes, context);
  if (!prepared.ok() || sequence == nullptr) return prepared;
  status = sequence->Admit(prepared->request.span, context.cross_kv);
  if (!status.ok()) return status;
  return prepared;
}

}  // namespace attendant::server
