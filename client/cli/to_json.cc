#include "client/cli/to_json.h"

#include <charconv>
#include <cmath>
#include <vector>

namespace attendant::client {
namespace {

Json Element(float value) { return ToJson(value); }
Json Element(int64_t value) { return value; }

// The nested list of the dimensions from `axis` on; `next` walks over the elements.
template <typename T>
Json Nest(const std::vector<int64_t>& shape, size_t axis, const T*& next) {
  if (axis == shape.size()) return Element(*next++);
  Json list = Json::array();
  for (int64_t i = 0; i < shape[axis]; ++i) list.push_back(Nest(shape, axis + 1, next));
  return list;
}

template <typename T>
Json Values(const Tensor& tensor, const absl::StatusOr<std::vector<T>>& values) {
  if (!values.ok()) return nullptr;
  const T* next = values->data();
  return Nest(tensor.shape, 0, next);
}

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

Json TypeName(std::optional<DataType> dtype) { return dtype ? Json(Name(*dtype)) : Json(nullptr); }

}  // namespace

Json ToJson(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof(digits), value);
  double shortest = 0;
  std::from_chars(digits, written.ptr, shortest);
  return shortest;
}

Json ToJson(const Tensor& tensor) {
  return {{"dtype", Name(tensor.dtype)},
          {"shape", tensor.shape},
          {"values", IsFloat(tensor.dtype) ? Values(tensor, ToFloats(tensor))
                                           : Values(tensor, ToInt64s(tensor))}};
}

Json ToJson(const Execution& execution) {
  return {{"queue_ms", Milliseconds(execution.queue)},
          {"copy_ms", Milliseconds(execution.copy)},
          {"compute_ms", Milliseconds(execution.compute)},
          {"tokens", execution.tokens},
          {"truncated_tokens", execution.truncated_tokens},
          {"batch_tokens", execution.batch_tokens},
          {"batch_requests", execution.batch_requests},
          {"compute_dtype", TypeName(execution.compute_dtype)},
          {"compute_type", execution.compute_type}};
}

namespace {

Json OfLayer(const LayerDescription& layer) {
  return {{"hidden_size", layer.hidden_size},
          {"heads", layer.heads},
          {"key_width", layer.key_width},
          {"value_width", layer.value_width},
          {"feed_forward_width", layer.feed_forward_width},
          {"score_scale", ToJson(layer.score_scale)},
          {"norm_placement", layer.norm_placement},
          {"norm_kind", layer.norm_kind},
          {"norm_epsilon", ToJson(layer.norm_epsilon)},
          {"activation", layer.activation},
          {"has_output_projection", layer.has_output_projection},
          {"has_gate", layer.has_gate},
          {"has_branch_scale", layer.has_branch_scale},
          {"relative_positions", layer.relative_positions},
          {"output_width", layer.output_width},
          {"input_projections", layer.input_projections},
          {"window", layer.window},
          {"window_block", layer.window_block},
          {"first_global_blocks", layer.first_global_blocks},
          {"last_global_blocks", layer.last_global_blocks},
          {"full_attention_up_to", layer.full_attention_up_to},
          {"attention", layer.attention},
          {"key_input_width", layer.key_input_width},
          {"value_input_width", layer.value_input_width}};
}

Json OfPrunedLayers(const std::vector<PrunedLayer>& layers) {
  Json list = Json::array();
  for (const PrunedLayer& pruned : layers) {
    list.push_back({{"layer", pruned.layer}, {"heads", pruned.heads}});
  }
  return list;
}

Json OfCosts(const std::vector<StageCost>& costs) {
  Json list = Json::array();
  for (const StageCost& cost : costs) {
    list.push_back({{"stage", cost.stage},
                    {"flops_per_token", cost.flops_per_token},
                    {"flops_per_pair", cost.flops_per_pair},
                    {"flops_per_sequence", cost.flops_per_sequence}});
  }
  return list;
}

}  // namespace

Json ToJson(const ModelInfo& model) {
  Json json = {{"name", model.name},
               {"family", model.family},
               {"layers", model.layers},
               {"weight_sets", model.weight_sets},
               {"layer", OfLayer(model.layer)},
               {"has_exit_norm", model.has_exit_norm},
               {"embeddings", nullptr},
               {"front", nullptr},
               {"windowed_layers", model.windowed_layers},
               {"block_pairs", model.block_pairs},
               {"global_blocks", model.global_blocks},
               {"pooled_width", model.pooled_width},
               {"classes", model.classes},
               {"pruned_layers", OfPrunedLayers(model.pruned_layers)},
               {"compute_dtype", TypeName(model.compute_dtype)},
               {"compute_type", model.compute_type},
               {"gemm", model.gemm},
               {"weight_bytes", model.weight_bytes},
               {"base", model.base},
               {"sequence_state_bytes", model.sequence_state_bytes},
               {"stage_costs", OfCosts(model.stage_costs)},
               {"limits",
                {{"max_request_tokens", model.limits.max_request_tokens},
                 {"max_batch_tokens", model.limits.max_batch_tokens},
                 {"max_request_bytes", model.limits.max_request_bytes},
                 {"max_answer_bytes", model.limits.max_answer_bytes}}},
               {"thread_plan",
                {{"instances", model.thread_plan.instances},
                 {"threads_per_instance", model.thread_plan.threads_per_instance},
                 {"isa", model.thread_plan.isa},
                 {"onednn_version", model.thread_plan.onednn_version},
                 {"instance_nodes", model.thread_plan.instance_nodes},
                 {"rows_per_thread_from", model.thread_plan.rows_per_thread_from}}},
               {"unused_tensors", model.unused_tensors}};
  if (model.embeddings) {
    json["embeddings"] = {{"vocabulary", model.embeddings->vocabulary},
                          {"positions", model.embeddings->positions},
                          {"longest_sequence", model.embeddings->longest_sequence},
                          {"token_types", model.embeddings->token_types}};
  }
  if (model.front) {
    json["front"] = {{"own_rows", model.front->own_rows},
                     {"features", model.front->features},
                     {"needs_every", model.front->needs_every},
                     {"feature_width", model.front->feature_width}};
  }
  return json;
}

}  // namespace attendant::client
