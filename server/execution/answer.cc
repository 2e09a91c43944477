#include "server/execution/answer.h"

#include <string>
#include <utility>

#include "server/tensors/status_mapping.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using Payloads = std::vector<ResponsePayload>;

// Puts the tensor's head into `head` and lists its data under `path`.
void Place(AnswerTensor& tensor, std::vector<int> path, v1::Tensor& head, Payloads& payloads) {
  head = tensor.head();
  payloads.push_back({std::move(path), tensor.TakeData()});
}

std::vector<int> Join(std::vector<int> prefix, std::initializer_list<int> rest) {
  prefix.insert(prefix.end(), rest);
  return prefix;
}

// A repeated LayerTensor; `path` leads to the field.
void PlaceAll(std::vector<std::pair<int64_t, AnswerTensor>>& tensors, const std::vector<int>& path,
              google::protobuf::RepeatedPtrField<v1::LayerTensor>& field, Payloads& payloads) {
  for (auto& [layer, tensor] : tensors) {
    const int index = field.size();
    v1::LayerTensor& element = *field.Add();
    element.set_layer(static_cast<uint32_t>(layer));
    Place(tensor, Join(path, {index, v1::LayerTensor::kTensorFieldNumber}),
          *element.mutable_tensor(), payloads);
  }
}

void Fill(Answer& answer, const std::vector<int>& prefix, v1::EncodeResponse& response,
          Payloads& payloads) {
  using Response = v1::EncodeResponse;
  if (answer.hidden_states) {
    Place(*answer.hidden_states, Join(prefix, {Response::kHiddenStatesFieldNumber}),
          *response.mutable_hidden_states(), payloads);
  }
  if (answer.pooled) {
    Place(*answer.pooled, Join(prefix, {Response::kPooledFieldNumber}), *response.mutable_pooled(),
          payloads);
  }
  PlaceAll(answer.intermediate, Join(prefix, {Response::kIntermediateFieldNumber}),
           *response.mutable_intermediate(), payloads);
  PlaceAll(answer.probabilities, Join(prefix, {Response::kAttentionProbabilitiesFieldNumber}),
           *response.mutable_attention_probabilities(), payloads);
  PlaceAll(answer.attention_keys, Join(prefix, {Response::kAttentionKeysFieldNumber}),
           *response.mutable_attention_keys(), payloads);
  *response.mutable_execution() = std::move(answer.execution);
}

}  // namespace

grpc::ByteBuffer ToAttendResponse(Answer answer) {
  using Response = v1::AttendResponse;
  Response response;
  Payloads payloads;
  Place(*answer.hidden_states, {Response::kOutputFieldNumber}, *response.mutable_output(),
        payloads);
  for (auto& [layer, tensor] : answer.probabilities) {
    Place(tensor, {Response::kAttentionProbabilitiesFieldNumber},
          *response.mutable_attention_probabilities(), payloads);
  }
  for (auto& [layer, tensor] : answer.attention_keys) {
    Place(tensor, {Response::kAttentionKeysFieldNumber}, *response.mutable_attention_keys(),
          payloads);
  }
  if (answer.weighted_values) {
    Place(*answer.weighted_values, {Response::kWeightedValuesFieldNumber},
          *response.mutable_weighted_values(), payloads);
  }
  *response.mutable_execution() = std::move(answer.execution);
  return SerializeResponse(response, std::move(payloads));
}

grpc::ByteBuffer ToEncodeResponse(Answer answer) {
  v1::EncodeResponse response;
  Payloads payloads;
  Fill(answer, {}, response, payloads);
  return SerializeResponse(response, std::move(payloads));
}

grpc::ByteBuffer ToPutMemoryResponse(Answer answer) {
  v1::PutMemoryResponse response;
  response.set_handle(answer.ticket->handle);
  response.set_bytes(answer.ticket->bytes);
  response.set_expires_unix_ms(absl::ToUnixMillis(answer.ticket->expires));
  *response.mutable_execution() = std::move(answer.execution);
  return SerializeResponse(response, {});
}

grpc::ByteBuffer ToStreamResponse(uint64_t id, Answer answer) {
  v1::EncodeStreamResponse response;
  response.set_id(id);
  Payloads payloads;
  Fill(answer, {v1::EncodeStreamResponse::kResponseFieldNumber}, *response.mutable_response(),
       payloads);
  return SerializeResponse(response, std::move(payloads));
}

grpc::ByteBuffer ToStreamError(uint64_t id, const absl::Status& status) {
  v1::EncodeStreamResponse response;
  response.set_id(id);
  response.mutable_error()->set_code(static_cast<int>(status.code()));
  response.mutable_error()->set_message(std::string(status.message()));
  return SerializeResponse(response, {});
}

}  // namespace attendant::server
