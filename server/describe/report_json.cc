#include "server/describe/report_json.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "server/cross_kv/stream_sequence.h"

namespace attendant::server {
namespace {

using Json = nlohmann::ordered_json;

// The shortest decimal of the float itself, not of the double that it widens to.
double Shortest(float value) {
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof(digits), value);
  double shortest = value;
  std::from_chars(digits, written.ptr, shortest);
  return shortest;
}

Json OfPairs(const BlockLists& listed) {
  Json pairs = Json::array();
  for (const BlockPair& pair : listed.pairs()) pairs.push_back({pair.query, pair.key});
  return pairs;
}

Json OfLayer(const LayerShape& layer) {
  return {{"hidden_size", layer.hidden_size},
          {"heads", layer.heads},
          {"key_input_width", layer.key_inputs()},
          {"value_input_width", layer.value_inputs()},
          {"key_width", layer.key_width},
          {"value_width", layer.value_width},
          {"feed_forward_width", layer.feed_forward_width},
          {"attention", Name(layer.attention)},
          {"score_scale", Shortest(layer.score_scale)},
          {"norm_placement", Name(layer.norm_placement)},
          {"norm_kind", Name(layer.norm_kind)},
          {"norm_epsilon", Shortest(layer.norm_epsilon)},
          {"activation", Name(layer.activation)},
          {"has_output_projection", layer.has_output_projection},
          {"has_gate", layer.has_gate},
          {"has_branch_scale", layer.has_branch_scale},
          {"relative_positions", Name(layer.relative_positions.kind)},
          {"window", layer.window},
          {"window_block", layer.pattern.block},
          {"first_global_blocks", layer.pattern.first_global},
          {"last_global_blocks", layer.pattern.last_global},
          {"full_attention_up_to", layer.pattern.full_up_to},
          {"block_pairs", OfPairs(layer.pattern.listed)},
          {"global_blocks", layer.pattern.listed.globals()},
          {"bottleneck", layer.bottleneck},
          {"feed_forwards", layer.feed_forwards},
          {"convolution",
           {{"taps", layer.convolution.taps},
            {"groups", layer.convolution.groups},
            {"activation", Name(layer.convolution.activation)}}}};
}

Json OfPooling(const PoolingDescription& pooling, int64_t hidden_size) {
  Json modes = Json::array();
  for (const PoolingMode mode : pooling.modes) modes.push_back(Name(mode));
  return {{"modes", modes},
          {"dense_width", pooling.dense_width},
          {"normalize", pooling.normalize},
          {"width", pooling.width(hidden_size)}};
}

Json OfWindowedLayers(const ModelDescription& model) {
  Json layers = Json::array();
  for (int64_t i = 0; i < model.layers; ++i) {
    if (model.layer_shape(model.weight_set(i)).window > 0) layers.push_back(i);
  }
  return layers;
}

Json OfPrunedLayers(const ModelDescription& model) {
  Json layers = Json::array();
  for (int64_t i = 0; i < model.layers; ++i) {
    const LayerShape layer = model.layer_at(i);
    if (layer.heads == model.layer.heads) continue;
    layers.push_back({{"layer", i}, {"heads", layer.head_numbers}});
  }
  return layers;
}

Json OfDescription(const ModelDescription& model) {
  Json json = {{"family", model.family},
               {"layers", model.layers},
               {"weight_sets", model.weight_sets()},
               {"layer", OfLayer(model.layer)},
               {"windowed_layers", OfWindowedLayers(model)},
               {"pruned_layers", OfPrunedLayers(model)},
               {"has_exit_norm", model.has_exit_norm},
               {"sequence_state_bytes", SequenceStateBytes(model)},
               {"embeddings", nullptr},
               {"front", nullptr},
               {"pooling", nullptr},
               {"classifier", nullptr}};
  if (const auto& embeddings = model.embeddings) {
    json["embeddings"] = {{"vocabulary", embeddings->vocabulary},
                          {"positions", embeddings->positions},
                          {"longest_sequence", embeddings->longest_sequence()},
                          {"token_types", embeddings->token_types},
                          {"width", embeddings->width}};
  }
  if (const auto& front = model.patch_embedding) {
    json["front"] = {{"own_rows", front->prefix_tokens()},
                     {"features", front->features()},
                     {"needs_every", front->needs_every},
                     {"feature_width", front->width(model.layer.hidden_size)}};
  }
  if (model.pooling) json["pooling"] = OfPooling(*model.pooling, model.layer.hidden_size);
  if (model.classifier) json["classifier"] = OfPooling(*model.classifier, model.layer.hidden_size);
  return json;
}

Json OfMemory(const ModelReport& report) {
  Json weights = Json::object();
  for (const WeightMemory& memory : report.weight_memory) {
    weights[Name(memory.type)] = {
        {"bytes", memory.bytes},
        {"refusal", memory.refusal.empty() ? Json(nullptr) : Json(memory.refusal)}};
  }
  Json json = {{"weights", weights},
               {"activations",
                {{"bytes", report.run_bytes},
                 {"tokens", report.run_tokens},
                 {"threads", report.plan.threads_per_instance},
                 {"instances", report.plan.instances}}},
               {"server", nullptr},
               {"limit", {{"bytes", report.limit.bytes}, {"reason", report.limit.reason}}}};
  if (const auto& need = report.need) {
    json["server"] = {{"bytes", need->total()},
                      {"loading", need->weights},
                      {"weight_copies", report.plan.copies()},
                      {"activations", need->activations},
                      {"receiving", need->receiving},
                      {"queue", need->queue},
                      {"answers", need->running},
                      {"registered", need->registered}};
  }
  return json;
}

Json OfCosts(const std::vector<StageCost>& costs) {
  Json list = Json::array();
  for (const StageCost& cost : costs) {
    list.push_back({{"stage", cost.stage},
                    {"flops_per_token", cost.per_token},
                    {"flops_per_pair", cost.per_pair},
                    {"flops_per_sequence", cost.per_sequence}});
  }
  return list;
}

Json OfWeights(const std::vector<WeightUse>& weights) {
  Json list = Json::array();
  for (const WeightUse& use : weights) {
    Json weight = {{"name", use.weight.name},
                   {"shape", use.weight.shape},
                   {"optional", use.weight.optional},
                   {"form", Name(use.form)}};
    if (!use.linear.empty()) {
      weight["linear"] = use.linear;
      weight["first_row"] = use.first_row;
    }
    list.push_back(weight);
  }
  return list;
}

Json OfTensors(const std::vector<CheckpointTensor>& tensors) {
  Json list = Json::array();
  for (const CheckpointTensor& tensor : tensors) {
    list.push_back({{"file", tensor.file},
                    {"name", tensor.name},
                    {"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes},
                    {"weights", tensor.weights}});
  }
  return list;
}

Json OfRanks(const std::vector<QueryKeyRanks>& ranks) {
  Json list = Json::array();
  for (const QueryKeyRanks& set : ranks) {
    list.push_back({{"heads", set.heads}, {"concatenated", set.concatenated}});
  }
  return list;
}

}  // namespace

std::string ToJson(const ModelReport& report) {
  const Checkpoint& found = report.model.checkpoint;
  const ModelSetting& setting = report.model.setting;
  Json json = {{"source", setting.source},
               {"compute_dtype", Name(setting.compute.type)},
               {"emulate", setting.compute.emulate},
               {"served", report.refusals.empty()},
               {"refusals", report.refusals},
               {"warnings", found.warnings},
               {"description", nullptr}};
  json["gemm"] = Name(setting.compute.gemm);
  if (found.description.layers > 0) json["description"] = OfDescription(found.description);
  if (!report.weights.empty()) {
    json["memory"] = OfMemory(report);
    json["stage_costs"] = OfCosts(report.costs);
    if (!report.ranks.empty()) json["query_key_ranks"] = OfRanks(report.ranks);
    if (!report.no_ranks.empty()) json["no_query_key_ranks"] = report.no_ranks;
    json["weights"] = OfWeights(report.weights);
  }
  json["tensors"] = OfTensors(found.tensors);
  // Names in files need not be UTF-8; the document has to be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace attendant::server
