#include "client/commands/encode_in_parts.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/answer_output.h"

namespace attendant::client {
namespace {

constexpr uint64_t kSequence = 1;
// The number of parts in flight, so that the server has the next part while it computes one.
constexpr int64_t kAhead = 2;

// The fields with one row per token.
constexpr std::optional<Tensor> EncodeRequest::*kInputs[] = {
    &EncodeRequest::hidden_states, &EncodeRequest::features, &EncodeRequest::token_ids,
    &EncodeRequest::token_type_ids, &EncodeRequest::position_ids};

const Tensor& InputOf(const EncodeRequest& request) {
  if (request.hidden_states) return *request.hidden_states;
  return request.features ? *request.features : *request.token_ids;
}

Tensor Tokens(const Tensor& tensor, int64_t first, int64_t count) {
  const size_t bytes = tensor.data.size() / static_cast<size_t>(tensor.shape[1]);
  Tensor part = {
      tensor.dtype, tensor.shape,
      tensor.data.substr(static_cast<size_t>(first) * bytes, static_cast<size_t>(count) * bytes)};
  part.shape[1] = count;
  return part;
}

void Append(const Tensor& part, Tensor& whole) {
  whole.shape[1] += part.shape[1];
  whole.data += part.data;
}

// Appends the rows of a chunk, which has the same tensors as every other chunk.
void Append(EncodeResult part, std::optional<EncodeResult>& whole) {
  if (!whole) {
    whole = std::move(part);
    return;
  }
  if (whole->hidden_states) Append(*part.hidden_states, *whole->hidden_states);
  for (size_t i = 0; i < whole->intermediate.size(); ++i) {
    Append(part.intermediate[i].tensor, whole->intermediate[i].tensor);
  }
  Add(part.execution, whole->execution);
}

bool HasRows(const Tensor& tensor) { return tensor.shape.size() == 3; }

// Returns whether the answer to a part has the tensors that were asked for.
bool IsSound(const EncodeResult& part, const EncodeRequest& request) {
  return part.hidden_states.has_value() != request.omit_hidden_states &&
         (!part.hidden_states || HasRows(*part.hidden_states)) &&
         part.intermediate.size() == request.intermediate_layers.size() &&
         std::all_of(part.intermediate.begin(), part.intermediate.end(),
                     [](const LayerTensor& layer) { return HasRows(layer.tensor); });
}

// Returns the fields that all parts share, without the input.
EncodeRequest WithoutInput(const EncodeRequest& request) {
  EncodeRequest bare;
  bare.model = request.model;
  bare.layers = request.layers;
  bare.omit_hidden_states = request.omit_hidden_states;
  bare.intermediate_layers = request.intermediate_layers;
  bare.head_gates = request.head_gates;
  bare.output_dtype = request.output_dtype;
  bare.request_id = request.request_id;
  return bare;
}

// Returns the reason why the stream ended before its last response.
absl::Status EndOf(EncodeStream& stream) {
  const absl::Status status = stream.Finish();
  if (!status.ok()) return status;
  return absl::InternalError("the stream ended before the response to every chunk");
}

}  // namespace

absl::Status CheckInParts(const EncodeRequest& request) {
  const Tensor& input = InputOf(request);
  if (request.attention_mask || !request.lengths.empty() || request.attention_bias ||
      !request.attention_layers.empty() || !request.query_rows.empty() || request.return_pooled ||
      request.return_token_vectors || request.return_sparse ||
      request.truncation != Truncation::kNone || request.layout != Layout::kBatchFirst) {
    return absl::InvalidArgumentError(
        "--chunk: cannot be combined with --mask, --lengths, --bias, --attention-layers, "
        "--query-rows, --pooled, --token-vectors, --sparse, --truncate and --sequence-first");
  }
  for (const auto field : kInputs) {
    const std::optional<Tensor>& tensor = request.*field;
    if (!tensor) continue;
    if (tensor->shape.size() < 2 || tensor->shape[0] != 1 || tensor->shape[1] < 1 ||
        tensor->shape[1] != input.shape[1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("--chunk: expected one sequence, with one row for each token; got ",
                       ShapeToString(tensor->shape)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<EncodeResult> EncodeInParts(const Client& client, const EncodeRequest& request,
                                           int64_t tokens, const CallOptions& call) {
  const int64_t length = InputOf(request).shape[1];
  tokens = std::min(tokens, length);
  const int64_t parts = (length + tokens - 1) / tokens;
  const EncodeRequest bare = WithoutInput(request);
  const std::unique_ptr<EncodeStream> stream = client.OpenEncodeStream(call);
  std::optional<EncodeResult> whole;
  for (int64_t sent = 0, answered = 0; answered < parts;) {
    if (sent < parts && sent - answered < kAhead) {
      const int64_t first = sent * tokens;
      EncodeRequest part = bare;
      for (const auto field : kInputs) {
        if (!(request.*field)) continue;
        part.*field = Tokens(*(request.*field), first, std::min(tokens, length - first));
      }
      const SequencePart place = {kSequence, static_cast<uint64_t>(first), sent + 1 == parts};
      if (!stream->Write(static_cast<uint64_t>(sent), std::move(part), place)) {
        return EndOf(*stream);
      }
      if (++sent == parts) stream->WritesDone();
      continue;
    }
    std::optional<EncodeStream::Answer> answer = stream->Read();
    if (!answer) return EndOf(*stream);
    if (!answer->result.ok()) return answer->result.status();
    if (answer->id != static_cast<uint64_t>(answered) || !IsSound(*answer->result, request)) {
      return absl::InternalError("the server's response is not for the next chunk");
    }
    Append(*std::move(answer->result), whole);
    ++answered;
  }
  if (absl::Status status = stream->Finish(); !status.ok()) return status;
  return *std::move(whole);
}

}  // namespace attendant::client
