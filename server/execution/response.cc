#include "server/execution/response.h"

#include <string>
#include <utility>

#include "server/metrics/refusal.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using Payloads = std::vector<ResponsePayload>;

// Puts the tensor's head into `head` and lists its data under `path`.
void Place(ResponseTensor& tensor, std::vector<int> path, v1::Tensor& head, Payloads& payloads) {
  head = tensor.head();
  payloads.push_back({std::move(path), tensor.TakeData()});
}

std::vector<int> Join(std::vector<int> prefix, std::initializer_list<int> rest) {
  prefix.insert(prefix.end(), rest);
  return prefix;
}

// A repeated LayerTensor; `path` leads to the field.
void PlaceAll(LayerTensors& tensors, const std::vector<int>& path,
              google::protobuf::RepeatedPtrField<v1::LayerTensor>& field, Payloads& payloads) {
  for (auto& [layer, tensor] : tensors) {
    const int index = field.size();
    v1::LayerTensor& element = *field.Add();
    element.set_layer(static_cast<uint32_t>(layer));
    Place(tensor, Join(path, {index, v1::LayerTensor::kTensorFieldNumber}),
          *element.mutable_tensor(), payloads);
  }
}

void FillTexts(Response& response, v1::EncodeResponse& message) {
  const TokenizedTexts& texts = *response.texts;
  response.execution.set_tokenize_ns(absl::ToInt64Nanoseconds(texts.duration));
  for (size_t i = 0; i < texts.texts.size(); ++i) {
    message.add_lengths(static_cast<int64_t>(texts.texts[i].ids.size()));
    if (response.describes_texts) *message.add_tokens() = texts.Describe(i);
  }
}

void Fill(Response& response, const std::vector<int>& prefix, v1::EncodeResponse& message,
          Payloads& payloads) {
  using Message = v1::EncodeResponse;
  const auto place = [&](std::optional<ResponseTensor>& tensor, int field,
                         v1::Tensor* (Message::*head)()) {
    if (tensor) Place(*tensor, Join(prefix, {field}), *(message.*head)(), payloads);
  };
  place(response.hidden_states, Message::kHiddenStatesFieldNumber, &Message::mutable_hidden_states);
  place(response.pooled, Message::kPooledFieldNumber, &Message::mutable_pooled);
  place(response.token_vectors, Message::kTokenVectorsFieldNumber, &Message::mutable_token_vectors);
  place(response.scores, Message::kScoresFieldNumber, &Message::mutable_scores);
  if (response.sparse) {
    using Sparse = v1::SparseVectors;
    Sparse& sparse = *message.mutable_sparse();
    const std::vector<int> path = Join(prefix, {Message::kSparseFieldNumber});
    sparse.mutable_counts()->Add(response.sparse->counts().begin(),
                                 response.sparse->counts().end());
    Place(response.sparse->indices(), Join(path, {Sparse::kIndicesFieldNumber}),
          *sparse.mutable_indices(), payloads);
    Place(response.sparse->weights(), Join(path, {Sparse::kWeightsFieldNumber}),
          *sparse.mutable_weights(), payloads);
  }
  PlaceAll(response.intermediate, Join(prefix, {Message::kIntermediateFieldNumber}),
           *message.mutable_intermediate(), payloads);
  PlaceAll(response.probabilities, Join(prefix, {Message::kAttentionProbabilitiesFieldNumber}),
           *message.mutable_attention_probabilities(), payloads);
  PlaceAll(response.attention_keys, Join(prefix, {Message::kAttentionKeysFieldNumber}),
           *message.mutable_attention_keys(), payloads);
  if (response.texts) FillTexts(response, message);
  *message.mutable_execution() = std::move(response.execution);
}

}  // namespace

grpc::ByteBuffer ToAttendResponse(Response response) {
  using Message = v1::AttendResponse;
  Message message;
  Payloads payloads;
  Place(*response.hidden_states, {Message::kOutputFieldNumber}, *message.mutable_output(),
        payloads);
  for (auto& [layer, tensor] : response.probabilities) {
    Place(tensor, {Message::kAttentionProbabilitiesFieldNumber},
          *message.mutable_attention_probabilities(), payloads);
  }
  for (auto& [layer, tensor] : response.attention_keys) {
    Place(tensor, {Message::kAttentionKeysFieldNumber}, *message.mutable_attention_keys(),
          payloads);
  }
  if (response.weighted_values) {
    Place(*response.weighted_values, {Message::kWeightedValuesFieldNumber},
          *message.mutable_weighted_values(), payloads);
  }
  *message.mutable_execution() = std::move(response.execution);
  return SerializeResponse(message, std::move(payloads));
}

grpc::ByteBuffer ToEncodeResponse(Response response) {
  v1::EncodeResponse message;
  Payloads payloads;
  Fill(response, {}, message, payloads);
  return SerializeResponse(message, std::move(payloads));
}

grpc::ByteBuffer ToPutMemoryResponse(Response response) {
  v1::PutMemoryResponse message;
  message.set_handle(response.registration.handle);
  message.set_bytes(response.registration.bytes);
  message.set_expires_unix_ms(absl::ToUnixMillis(response.registration.expires));
  *message.mutable_execution() = std::move(response.execution);
  return SerializeResponse(message, {});
}

grpc::ByteBuffer ToStreamResponse(uint64_t id, Response response) {
  v1::EncodeStreamResponse message;
  message.set_id(id);
  Payloads payloads;
  Fill(response, {v1::EncodeStreamResponse::kResponseFieldNumber}, *message.mutable_response(),
       payloads);
  return SerializeResponse(message, std::move(payloads));
}

grpc::ByteBuffer ToStreamError(uint64_t id, const absl::Status& status,
                               std::optional<absl::Duration> retry_after) {
  v1::EncodeStreamResponse message;
  message.set_id(id);
  v1::Error& error = *message.mutable_error();
  error.set_code(static_cast<int>(status.code()));
  error.set_message(std::string(status.message()));
  error.set_reason(ReasonOf(status));
  if (retry_after) error.set_retry_pushback_ms(absl::ToInt64Milliseconds(*retry_after));
  return SerializeResponse(message, {});
}

}  // namespace attendant::server
