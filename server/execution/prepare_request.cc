#include "server/execution/prepare_request.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/models/model_lookup.h"
#include "server/request/tokenized_texts.h"
#include "server/tensors/status_mapping.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

// Bound for the names, shapes, gates and `lengths` of the request and its `memory`, and for
// `query_rows`, at most one per token.
int64_t MaxHeadBytes(const ServiceLimits& limits) {
  return (int64_t{64} << 10) + 12 * limits.max_request_tokens;
}

template <typename Request>
absl::StatusOr<Received<Request>> Receive(const grpc::ByteBuffer& message,
                                          const ServiceContext& context) {
  Received<Request> received;
  ASSIGN_OR_RETURN(received.payloads,
                   ParseRequest(message, MaxHeadBytes(context.limits), received.request));
  received.bytes = static_cast<int64_t>(message.Length());
  return received;
}

template <typename Request>
absl::StatusOr<ComputeRequest> Parse(const Received<Request>& received, const std::string& client,
                                     const ServiceContext& context) {
  const RequestPayloads payloads(received.payloads, {});
  if constexpr (std::is_same_v<Request, v1::EncodeRequest>) {
    return ParseRequest(received.request, payloads, context, client);
  } else {
    return ParseRequest(received.request, payloads, context);
  }
}

template <typename Request, auto ToMessage>
absl::StatusOr<Preparation> ParseAndPrepare(const grpc::ByteBuffer& message,
                                            const ServiceContext& context) {
  ASSIGN_OR_RETURN(auto received, Receive<Request>(message, context));
  Preparation preparation;
  if constexpr (std::is_same_v<Request, v1::EncodeRequest>) {
    preparation.tokenizing_bytes =
        TokenizingBytes(received.request, RequestPayloads(received.payloads, {}), context);
  }
  preparation.prepare = [received = std::move(received),
                         &context](const std::string& client) -> absl::StatusOr<Prepared> {
    ASSIGN_OR_RETURN(PreparedCompute prepared,
                     PrepareRequest(Parse(received, client, context), received.bytes, context));
    prepared.to_message = ToMessage;
    return prepared;
  };
  return preparation;
}

absl::StatusOr<grpc::ByteBuffer> Tokenize(const TextFields& fields, const ServedModel& model,
                                          const ServiceContext& context) {
  ASSIGN_OR_RETURN(const TokenizedTexts texts, TokenizeTexts(fields, model, context.clock));
  const int64_t most = context.limits.max_answer_bytes;
  if (const int64_t bytes = texts.description_bytes(); bytes > most) {
    return absl::InvalidArgumentError(absl::StrCat("the response could take ", bytes,
                                                   " bytes; the server allows ", most,
                                                   " (--max-answer-bytes); send fewer texts"));
  }
  v1::TokenizeResponse response;
  response.set_model_version(model.version);
  for (size_t i = 0; i < texts.texts.size(); ++i) *response.add_texts() = texts.Describe(i);
  return SerializeResponse(response);
}

// Checks that `first_token` and `ends` of an item fit its sequence.
absl::Status CheckPosition(const v1::EncodeStreamRequest& item, const StreamSequence* sequence) {
  if (sequence == nullptr) {
    if (item.has_first_token()) {
      return MissingFor("first_token", "sequence");
    }
    return item.ends() ? MissingFor("ends", "sequence") : absl::OkStatus();
  }
  if (!item.has_first_token() ||
      item.first_token() == static_cast<uint64_t>(sequence->tokens().all)) {
    return absl::OkStatus();
  }
  return InvalidField("first_token",
                      absl::StrCat(sequence->tokens().all, " (the tokens of sequence ",
                                   sequence->number(), " so far)"),
                      absl::StrCat(item.first_token()));
}

}  // namespace

absl::StatusOr<PreparedCompute> PrepareRequest(absl::StatusOr<ComputeRequest> compute,
                                               int64_t message_bytes,
                                               const ServiceContext& context) {
  if (!compute.ok()) return compute.status();
  ASSIGN_OR_RETURN(const int64_t response,
                   PredictResponseBytes(*compute, context.limits.max_answer_bytes));
  const int64_t bytes = message_bytes + response + PredictScratchBytes(*compute);
  return PreparedCompute{*std::move(compute), bytes};
}

absl::StatusOr<Preparation> PrepareAttend(const grpc::ByteBuffer& message,
                                          const ServiceContext& context) {
  return ParseAndPrepare<v1::AttendRequest, ToAttendResponse>(message, context);
}

absl::StatusOr<Preparation> PrepareEncode(const grpc::ByteBuffer& message,
                                          const ServiceContext& context) {
  return ParseAndPrepare<v1::EncodeRequest, ToEncodeResponse>(message, context);
}

absl::StatusOr<Preparation> PreparePutMemory(const grpc::ByteBuffer& message,
                                             const ServiceContext& context) {
  return ParseAndPrepare<v1::PutMemoryRequest, ToPutMemoryResponse>(message, context);
}

absl::StatusOr<Preparation> PrepareTokenize(const grpc::ByteBuffer& message,
                                            const ServiceContext& context) {
  ASSIGN_OR_RETURN(const auto received, Receive<v1::TokenizeRequest>(message, context));
  ASSIGN_OR_RETURN(auto model, FindModel(*context.models.Snapshot(), received.request.model()));
  TextFields fields = ReadTextFields(received.request, RequestPayloads(received.payloads, {}));
  fields.add_special_tokens = !received.request.omit_special_tokens();
  fields.places = true;
  fields.most_tokens = context.limits.max_request_tokens;
  Preparation preparation;
  // Three times: for the tokens, the answer, and its message.
  preparation.tokenizing_bytes = std::max<int64_t>(1, 3 * TokenizingBytes(fields, *model));
  preparation.prepare = [fields = std::move(fields), model = std::move(model),
                         &context](const std::string&) -> absl::StatusOr<Prepared> {
    ASSIGN_OR_RETURN(grpc::ByteBuffer answer, Tokenize(fields, *model, context));
    return answer;
  };
  return preparation;
}

int64_t TokenizingBytes(const StreamItem& item, const ServiceContext& context) {
  return TokenizingBytes(
      item.request.request(),
      RequestPayloads(item.payloads, {v1::EncodeStreamRequest::kRequestFieldNumber}), context);
}

absl::StatusOr<StreamItem> ReceiveItem(const grpc::ByteBuffer& message,
                                       const ServiceContext& context) {
  return Receive<v1::EncodeStreamRequest>(message, context);
}

absl::StatusOr<PreparedCompute> PrepareItem(const StreamItem& item, const std::string& client,
                                            const std::shared_ptr<StreamSequence>& sequence,
                                            const ServiceContext& context) {
  const v1::EncodeStreamRequest& message = item.request;
  if (!message.has_request()) return InvalidField("request", "an EncodeRequest", "none");
  if (sequence != nullptr) {
    RETURN_IF_ERROR(sequence->model().status());
  }
  RETURN_IF_ERROR(CheckPosition(message, sequence.get()));
  const RequestPayloads payloads(item.payloads, {v1::EncodeStreamRequest::kRequestFieldNumber});
  ASSIGN_OR_RETURN(
      PreparedCompute prepared,
      PrepareRequest(ParseRequest(message.request(), payloads, context, client, sequence),
                     item.bytes, context));
  if (sequence != nullptr) {
    RETURN_IF_ERROR(sequence->Admit(prepared.request.span, context.cross_kv));
  }
  return prepared;
}

}  // namespace attendant::server
