#include "server/request/request_slice.h"

namespace attendant::server {
namespace {

Input InputOf(const ComputeRequest& request, int64_t first, int64_t count) {
  if (const KeptIds* ids = std::get_if<KeptIds>(&request.input)) {
    const TokenLayout& layout = request.layout;
    const int64_t first_token = layout.cu_seqlens[first];
    return ids->Tokens(first_token, layout.cu_seqlens[first + count] - first_token);
  }
  if (const FeatureRows* features = std::get_if<FeatureRows>(&request.input)) {
    return FeatureRows{features->tensor, SequencesOf(features->layout, first, count)};
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

ComputeRequest SequencesOf(const ComputeRequest& request, int64_t first, int64_t count) {
  ComputeRequest part;
  part.span = request.span;
  part.operation = request.operation;
  part.layout = SequencesOf(request.layout, first, count);
  part.input = InputOf(request, first, count);
  part.keys = KeysOf(request, first, count);
  part.bias = request.bias;
  part.head_gates = request.head_gates;
  part.outputs = request.outputs;
  if (part.outputs.pooled && !part.outputs.pooled->prompt_tokens.empty()) {
    const auto whole = request.outputs.pooled->prompt_tokens.begin();
    part.outputs.pooled->prompt_tokens.assign(whole + first, whole + first + count);
  }
  if (!part.outputs.hidden_states || !part.outputs.hidden_states->tokens) return part;
  const int32_t first_token = request.layout.cu_seqlens[first];
  for (int32_t& token : *part.outputs.hidden_states->tokens) {
    token -= first_token;
    if (token < 0 || token >= part.layout.tokens()) token = -1;
  }
  return part;
}

}  // namespace attendant::server
