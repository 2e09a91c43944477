#include "server/request/compute_request.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/layers/pooling.h"

namespace attendant::server {
namespace {

// What protobuf adds around the data of one tensor (tags, lengths, dtype, shape), and to the
// message as a whole (the execution, a stream item's id), at most.
constexpr int64_t kTensorHeadBytes = 96;
constexpr int64_t kMessageHeadBytes = 160;

// A sum of numbers >= 0 that sticks at the largest number instead of overflowing.
class SaturatingSum {
 public:
  void Add(std::optional<int64_t> bytes) {
    if (!bytes || __builtin_add_overflow(sum_, *bytes, &sum_)) sum_ = INT64_MAX;
  }
  int64_t value() const { return sum_; }

 private:
  int64_t sum_ = 0;
};

std::optional<int64_t> TensorBytes(const std::vector<int64_t>& shape, DataType dtype) {
  const std::optional<int64_t> elements = ElementCount(shape);
  return elements ? CheckedMultiply(*elements, ByteWidth(dtype)) : std::nullopt;
}

// Of one layer, dense: [H, length, keys] for each sequence.
std::optional<int64_t> ProbabilityScratchBytes(const ComputeRequest& request) {
  SaturatingSum sum;
  for (int64_t b = 0; b < request.layout.sequences; ++b) {
    sum.Add(TensorBytes({request.description().layer.heads, request.pairs(b)}, DataType::kFloat32));
  }
  return sum.value();
}

}  // namespace

BatchKey ComputeRequest::key() const {
  // Memories are projected for a whole batch, values from the rows of the keys or from others.
  const int32_t inputs = !attends_memory() ? 0 : memory && memory->values ? 2 : 1;
  return {model.get(), static_cast<int32_t>(operation) * 3 + inputs, first_layer, layers};
}

bool ComputeRequest::AppendWantedRows(int64_t first_row, std::vector<int32_t>& rows) const {
  const int64_t last_layer = first_layer + layers - 1;
  if (absl::c_linear_search(intermediate_layers, last_layer)) return false;
  if (wants_hidden_states ? !query_tokens : !pooled) return false;
  const size_t begin = rows.size();
  if (pooled && !AppendRowsToPool(first_row, rows)) return false;
  if (!query_tokens) return true;
  for (const int32_t token : *query_tokens) {
    if (token >= 0) rows.push_back(static_cast<int32_t>(first_row) + token);
  }
  std::sort(rows.begin() + begin, rows.end());
  rows.erase(std::unique(rows.begin() + begin, rows.end()), rows.end());
  return true;
}

bool ComputeRequest::AppendRowsToPool(int64_t first_row, std::vector<int32_t>& rows) const {
  const auto& described = pooled->classifies ? description().classifier : description().pooling;
  const std::vector<PoolingMode>& modes = pooled->modes.empty() ? described->modes : pooled->modes;
  for (int64_t b = 0; b < layout.sequences; ++b) {
    if (!AppendPooledRows(modes, first_row + layout.cu_seqlens[b], layout.length(b), rows)) {
      return false;
    }
  }
  return true;
}

std::vector<int64_t> ComputeRequest::rows_shape() const {
  if (layout.packed) return {layout.rows, width};
  if (layout.sequence_first) return {layout.padded_length, layout.sequences, width};
  return {layout.sequences, layout.padded_length, width};
}

std::vector<int64_t> ComputeRequest::hidden_shape() const {
  if (query_tokens) return {static_cast<int64_t>(query_tokens->size()), width};
  return rows_shape();
}

std::vector<int64_t> ComputeRequest::scores_shape() const {
  return {layout.sequences, description().layer.heads, layout.padded_length,
          key_layout().padded_length};
}

std::vector<int64_t> ComputeRequest::probabilities_shape(int64_t layer) const {
  const int64_t length = layout.padded_length;
  const int64_t keys = key_layout().padded_length;
  switch (attention.form) {
    case AttentionForm::kPerHead:
      return {layout.sequences, description().heads_at(layer), length, keys};
    case AttentionForm::kHeadMean:
      return {layout.sequences, length, keys};
    case AttentionForm::kTopKeys:
      return {layout.sequences, description().heads_at(layer), length, attention.top_k};
  }
  return {};
}

std::vector<int64_t> ComputeRequest::weighted_values_shape(int64_t layer) const {
  const int64_t length = layout.padded_length;
  return {layout.sequences, description().heads_at(layer), length, length,
          description().layer.value_width};
}

std::vector<int64_t> ComputeRequest::pooled_shape() const {
  return {layout.sequences, pooled->width};
}

absl::StatusOr<RequestBytes> PredictBytes(const ComputeRequest& request, int64_t max_answer_bytes) {
  SaturatingSum answer;
  answer.Add(kMessageHeadBytes);
  const auto add_tensor = [&](const std::vector<int64_t>& shape) {
    answer.Add(TensorBytes(shape, request.output_dtype));
    answer.Add(kTensorHeadBytes);
  };
  if (request.wants_hidden_states) add_tensor(request.hidden_shape());
  for (size_t i = 0; i < request.intermediate_layers.size(); ++i) add_tensor(request.rows_shape());
  const AttentionOutput& attention = request.attention;
  for (const int64_t layer : attention.layers) {
    if (attention.probabilities) add_tensor(request.probabilities_shape(layer));
    if (attention.probabilities && attention.form == AttentionForm::kTopKeys) {
      answer.Add(TensorBytes(request.probabilities_shape(layer), DataType::kInt32));
      answer.Add(kTensorHeadBytes);
    }
    if (attention.weighted_values) add_tensor(request.weighted_values_shape(layer));
  }
  if (request.pooled) add_tensor(request.pooled_shape());
  if (answer.value() > max_answer_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the answer would take ",
                     answer.value() == INT64_MAX ? "more than 2^63" : absl::StrCat(answer.value()),
                     " bytes; the server allows ", max_answer_bytes));
  }
  SaturatingSum scratch;
  if (request.bias) scratch.Add(TensorBytes(request.bias->shape, DataType::kFloat32));
  if (!attention.layers.empty()) scratch.Add(ProbabilityScratchBytes(request));
  if (attention.weighted_values) {
    scratch.Add(TensorBytes({request.layout.tokens(), request.description().layer.context_width()},
                            DataType::kFloat32));
  }
  if (const KeptIds* ids = std::get_if<KeptIds>(&request.input)) scratch.Add(ids->bytes());
  return RequestBytes{answer.value(), scratch.value()};
}

}  // namespace attendant::server
