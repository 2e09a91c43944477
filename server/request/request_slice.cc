#include "server/request/request_slice.h"

#include <numeric>
#include <variant>
#include <vector>

namespace attendant::server {
namespace {

Input InputOf(const ComputeRequest& request, absl::Span<const int64_t> sequences) {
  if (const KeptIds* ids = std::get_if<KeptIds>(&request.input)) {
    return ids->OfSequences(request.layout, sequences);
  }
  if (const TokenRows* features = std::get_if<TokenRows>(&request.input)) {
    return TokenRows{SequencesAt(features->layout, sequences), features->tensor,
                     features->are_pixels};
  }
  return request.input;
}

std::vector<int64_t> PromptsOf(const PooledOutput& pooled, absl::Span<const int64_t> sequences) {
  std::vector<int64_t> prompts;
  if (pooled.prompt_tokens.empty()) return prompts;
  for (const int64_t b : sequences) prompts.push_back(pooled.prompt_tokens[b]);
  return prompts;
}

Keys KeysOf(const ComputeRequest& request, absl::Span<const int64_t> sequences) {
  if (const CrossKvRows* rows = request.cross_kv_rows()) {
    return CrossKvRows{SequencesAt(rows->layout, sequences), rows->hidden_states, rows->values};
  }
  return request.keys;
}

}  // namespace

bool CanBeSliced(const ComputeRequest& request) {
  if (request.layout.sequences == 1) return false;
  const bool shares_bias = request.bias && request.bias->dim(0) == 1;
  const bool shares_rows = request.cross_kv_rows() && request.key_layout().sequences == 1;
  return !shares_bias && !shares_rows;
}

ComputeRequest SequencesAt(ComputeRequest request, absl::Span<const int64_t> sequences) {
  request.input = InputOf(request, sequences);
  request.layout = SequencesAt(request.layout, sequences);
  auto& pooled = request.outputs.pooled;
  if (pooled) pooled->prompt_tokens = PromptsOf(*pooled, sequences);
  return request;
}

ComputeRequest SequencesOf(const ComputeRequest& request, int64_t first, int64_t count) {
  std::vector<int64_t> sequences(count);
  std::iota(sequences.begin(), sequences.end(), first);
  ComputeRequest slice;
  slice.span = request.span;
  slice.operation = request.operation;
  slice.layout = SequencesAt(request.layout, sequences);
  slice.first_sequence = first;
  slice.input = InputOf(request, sequences);
  slice.keys = KeysOf(request, sequences);
  slice.bias = request.bias;
  slice.head_gates = request.head_gates;
  slice.outputs = request.outputs;
  auto& pooled = slice.outputs.pooled;
  if (pooled) pooled->prompt_tokens = PromptsOf(*pooled, sequences);
  if (!slice.outputs.hidden_tokens) return slice;
  const int32_t first_token = request.layout.cu_seqlens[first];
  for (int32_t& token : *slice.outputs.hidden_tokens) {
    token -= first_token;
    if (token < 0 || token >= slice.layout.tokens()) token = -1;
  }
  return slice;
}

}  // namespace attendant::server
