#include "server/execution/response.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
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

// Adds all tensors of a kind, as elements of a repeated LayerTensor if `with_layers`, otherwise as
// fields.
void AddAll(OutputKind kind, int number, bool with_layers, Response& response,
            MessageWriter& message) {
  for (OutputTensor& output : response.outputs) {
    if (output.kind != kind) continue;
    if (!with_layers) {
      Add(number, output.tensor, message);
      continue;
    }
    v1::LayerTensor head;
    head.set_layer(static_cast<uint32_t>(output.layer));
    MessageWriter element(head);
    Add(v1::LayerTensor::kTensorFieldNumber, output.tensor, element);
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
  const auto add = [&](OutputKind kind, int number, bool with_layers = false) {
    AddAll(kind, number, with_layers, response, message);
  };
  add(OutputKind::kHiddenStates, Message::kHiddenStatesFieldNumber);
  add(OutputKind::kPooled, Message::kPooledFieldNumber);
  add(OutputKind::kIntermediate, Message::kIntermediateFieldNumber, true);
  add(OutputKind::kProbabilities, Message::kAttentionProbabilitiesFieldNumber, true);
  add(OutputKind::kAttentionKeys, Message::kAttentionKeysFieldNumber, true);
  add(OutputKind::kTokenVectors, Message::kTokenVectorsFieldNumber);
  add(OutputKind::kScores, Message::kScoresFieldNumber);
  if (response.sparse) {
    v1::SparseVectors counts;
    counts.mutable_counts()->Add(response.sparse->counts().begin(),
                                 response.sparse->counts().end());
    MessageWriter sparse(counts);
    Add(v1::SparseVectors::kIndicesFieldNumber, response.sparse->indices(), sparse);
    Add(v1::SparseVectors::kWeightsFieldNumber, response.sparse->weights(), sparse);
    message.Add(Message::kSparseFieldNumber, std::move(sparse));
  }
  return message;
}

}  // namespace

ResponseTensor* Response::Find(OutputKind kind, int64_t layer) {
  const auto found = absl::c_find_if(outputs, [&](const OutputTensor& output) {
    return output.kind == kind && output.layer == layer;
  });
  return found == outputs.end() ? nullptr : &found->tensor;
}

grpc::ByteBuffer ToAttendResponse(Response response) {
  using Message = v1::AttendResponse;
  Message head;
  *head.mutable_execution() = std::move(response.execution);
  MessageWriter message(head);
  const auto add = [&](OutputKind kind, int number) {
    AddAll(kind, number, /*with_layers=*/false, response, message);
  };
  add(OutputKind::kHiddenStates, Message::kOutputFieldNumber);
  add(OutputKind::kProbabilities, Message::kAttentionProbabilitiesFieldNumber);
  add(OutputKind::kAttentionKeys, Message::kAttentionKeysFieldNumber);
  add(OutputKind::kWeightedValues, Message::kWeightedValuesFieldNumber);
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
