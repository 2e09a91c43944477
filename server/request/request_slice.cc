#include "server/request/request_slice.h"

#include <utility>
#include <variant>
#include <vector>

namespace attendant::server {
namespace {

Input InputOf(const ComputeRequest& request, int64_t first, int64_t count) {
  if (const KeptIds* ids = std::get_if<KeptIds>(&request.input)) {
    const TokenLayout& layout = request.layout;
    const int64_t first_token = layout.cu_seqlens[first];
    return ids->Tokens(first_token, layout.cu_seqlens[first + count] - first_token);
  }
  if (const FeatureRows* features = std::get_if<FeatureRows>(&request.input)) {
    return FeatureRows{features->tensor, SequencesOf(features->layout, first, count),
                       features->are_pixels};
  }
  return request.input;
}

Keys KeysOf(const ComputeRequest& request, int64_t first, int64_t count) {
  if (const CrossKvRows* rows = request.cross_kv_rows()) {
    return CrossKvRows{SequencesOf(rows->layout, first, count), rows->hidden_states, rows->values};
  }
  if (const RegisteredKeys* registered = std::get_if<RegisteredKeys>(&request.keys)) {
    return RegisteredKeys{registered->cross_kv, request.key_sequence(first)};
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
  if (auto* ids = std::get_if<KeptIds>(&request.input)) {
    request.input = ids->OfSequences(request.layout, sequences);
  } else if (auto* features = std::get_if<FeatureRows>(&request.input)) {
    features->layout = SequencesAt(features->layout, sequences);
  }
  request.layout = SequencesAt(request.layout, sequences);
  if (!request.outputs.pooled || request.outputs.pooled->prompt_tokens.empty()) return request;
  std::vector<int64_t> prompts;
  for (const int64_t b : sequences) prompts.push_back(request.outputs.pooled->prompt_tokens[b]);
  request.outputs.pooled->prompt_tokens = std::move(prompts);
  return request;
}

ComputeRequest SequencesOf(const ComputeRequest& request, int64_t first, int64_t count) {
  ComputeRequest slice;
  slice.span = request.span;
  slice.operation = request.operation;
  slice.layout = SequencesOf(request.layout, first, count);
  slice.first_sequence = first;
  slice.input = InputOf(request, first, count);
  slice.keys = KeysOf(request, first, count);
  slice.bias = request.bias;
  slice.head_gates = request.head_gates;
  slice.outputs = request.outputs;
  if (slice.outputs.pooled && !slice.outputs.pooled->prompt_tokens.empty()) {
    const auto whole = request.outputs.pooled->prompt_tokens.begin();
    slice.outputs.pooled->prompt_tokens.assign(whole + first, whole + first + count);
  }
  if (!slice.outputs.hidden_states || !slice.outputs.hidden_states->tokens) return slice;
  const int32_t first_token = request.layout.cu_seqlens[first];
  for (int32_t& token : *slice.outputs.hidden_states->tokens) {
    token -= first_token;
    if (token < 0 || token >= slice.layout.tokens()) token = -1;
  }
  return slice;
}

}  // namespace attendant::server
