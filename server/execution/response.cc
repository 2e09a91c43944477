#include "server/execution/response.h"

#include <string>
#include <utility>

#include "server/metrics/refusal.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

// Adds the tensor as a field, or as an element of a repeated one.
void Add(int number, ResponseTensor& tensor, MessageWriter& message) {
  MessageWriter writer(tensor.head());
  // protobuf omits an empty bytes field, too
  if (tensor.elements() > 0) writer.Add(v1::Tensor::kDataFieldNumber, tensor.TakeData());
  message.Add(number, std::move(writer));
}

// Adds a repeated LayerTensor.
void AddAll(int number, LayerTensors& tensors, MessageWriter& message) {
  for (auto& [layer, tensor] : tensors) {
    v1::LayerTensor head;
    head.set_layer(static_cast<uint32_t>(layer));
    MessageWriter element(head);
    Add(v1::LayerTensor::kTensorFieldNumber, tensor, element);
    message.Add(number, std::move(element));
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

MessageWriter WriteEncode(Response response) {
  using Message = v1::EncodeResponse;
  Message head;
  if (response.texts) FillTexts(response, head);
  *head.mutable_execution() = std::move(response.execution);
  MessageWriter message(head);
  const auto add = [&](int number, std::optional<ResponseTensor>& tensor) {
    if (tensor) Add(number, *tensor, message);
  };
  add(Message::kHiddenStatesFieldNumber, response.hidden_states);
  add(Message::kPooledFieldNumber, response.pooled);
  add(Message::kTokenVectorsFieldNumber, response.token_vectors);
  add(Message::kScoresFieldNumber, response.scores);
  if (response.sparse) {
    v1::SparseVectors counts;
    counts.mutable_counts()->Add(response.sparse->counts().begin(),
                                 response.sparse->counts().end());
    MessageWriter sparse(counts);
    Add(v1::SparseVectors::kIndicesFieldNumber, response.sparse->indices(), sparse);
    Add(v1::SparseVectors::kWeightsFieldNumber, response.sparse->weights(), sparse);
    message.Add(Message::kSparseFieldNumber, std::move(sparse));
  }
  AddAll(Message::kIntermediateFieldNumber, response.intermediate, message);
  AddAll(Message::kAttentionProbabilitiesFieldNumber, response.probabilities, message);
  AddAll(Message::kAttentionKeysFieldNumber, response.attention_keys, message);
  return message;
}

}  // namespace

grpc::ByteBuffer ToAttendResponse(Response response) {
  using Message = v1::AttendResponse;
  Message head;
  *head.mutable_execution() = std::move(response.execution);
  MessageWriter message(head);
  Add(Message::kOutputFieldNumber, *response.hidden_states, message);
  for (auto& [layer, tensor] : response.probabilities) {
    Add(Message::kAttentionProbabilitiesFieldNumber, tensor, message);
  }
  for (auto& [layer, tensor] : response.attention_keys) {
    Add(Message::kAttentionKeysFieldNumber, tensor, message);
  }
  if (response.weighted_values) {
    Add(Message::kWeightedValuesFieldNumber, *response.weighted_values, message);
  }
  return std::move(message).Finish();
}

grpc::ByteBuffer ToEncodeResponse(Response response) {
  return WriteEncode(std::move(response)).Finish();
}

grpc::ByteBuffer ToPutMemoryResponse(Response response) {
  v1::PutMemoryResponse message;
  message.set_handle(response.registration.handle);
  message.set_bytes(response.registration.bytes);
  message.set_expires_unix_ms(absl::ToUnixMillis(response.registration.expires));
  *message.mutable_execution() = std::move(response.execution);
  return SerializeResponse(message);
}

grpc::ByteBuffer ToStreamResponse(uint64_t id, Response response) {
  v1::EncodeStreamResponse head;
  head.set_id(id);
  MessageWriter message(head);
  message.Add(v1::EncodeStreamResponse::kResponseFieldNumber, WriteEncode(std::move(response)));
  return std::move(message).Finish();
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
  return SerializeResponse(message);
}

}  // namespace attendant::server
