#include "engine/checkpoint/weight_source.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using Weights = std::vector<WeightSpec>;

void AddLinear(const std::string& name, int64_t out, int64_t in, Weights& weights) {
  weights.push_back({absl::StrCat(name, ".weight"), {out, in}});
  weights.push_back({absl::StrCat(name, ".bias"), {out}, /*optional=*/true});
}

void AddNorm(const std::string& name, NormKind kind, int64_t width, Weights& weights) {
  weights.push_back({absl::StrCat(name, ".weight"), {width}});
  if (kind == NormKind::kRms) return;
  weights.push_back({absl::StrCat(name, ".bias"), {width}, /*optional=*/true});
}

void AddEmbeddings(const EmbeddingShape& shape, const LayerShape& layer, Weights& weights) {
  weights.push_back({"embeddings.word", {shape.vocabulary, shape.width}});
  if (shape.positions > 0) {
    weights.push_back({"embeddings.position", {shape.positions, shape.width}});
  }
  if (shape.token_types > 0) {
    weights.push_back({"embeddings.token_type", {shape.token_types, shape.width}});
  }
  if (shape.has_norm) AddNorm("embeddings.norm", layer.norm_kind, shape.width, weights);
  if (shape.projected(layer.hidden_size)) {
    AddLinear("embeddings.projection", layer.hidden_size, shape.width, weights);
  }
}

void AddFront(const FrontShape& shape, const LayerShape& layer, Weights& weights) {
  const int64_t width = layer.hidden_size;
  if (shape.feature_width > 0) AddLinear("front.projection", width, shape.feature_width, weights);
  if (shape.has_class) weights.push_back({"front.class", {1, width}});
  if (shape.has_distillation) weights.push_back({"front.distillation", {1, width}});
  if (shape.registers > 0) weights.push_back({"front.registers", {shape.registers, width}});
  if (shape.positions > 0) weights.push_back({"front.positions", {shape.positions, width}});
  if (shape.has_norm) AddNorm("front.norm", layer.norm_kind, width, weights);
}

void AddLayer(const LayerShape& shape, int64_t index, Weights& weights) {
  const std::string prefix = absl::StrCat("layer.", index, ".");
  const int64_t width = shape.hidden_size;
  for (const auto& [name, out, in] : InputProjections(shape)) {
    AddLinear(prefix + name, out, in, weights);
  }
  if (shape.has_output_projection) {
    AddLinear(prefix + "output", shape.projected_width(), shape.context_width(), weights);
  }
  const bool has_norms = shape.norm_placement != NormPlacement::kNone;
  if (shape.has_branch_scale) weights.push_back({prefix + "attention_scale", {width}});
  if (shape.has_query_key_norms) {
    AddNorm(prefix + "query_norm", shape.norm_kind, shape.heads * shape.key_width, weights);
    AddNorm(prefix + "key_norm", shape.norm_kind, shape.heads * shape.key_width, weights);
  }
  if (has_norms && shape.has_attention_norm)
    AddNorm(prefix + "attention_norm", shape.norm_kind, width, weights);
  if (shape.has_second_attention_norm) {
    AddNorm(prefix + "second_attention_norm", shape.norm_kind, width, weights);
  }
  if (shape.feed_forward_width == 0) return;
  if (shape.has_gate) {
    AddLinear(prefix + "feed_forward_gate", shape.feed_forward_width, width, weights);
  }
  AddLinear(prefix + "feed_forward_in", shape.feed_forward_width, width, weights);
  AddLinear(prefix + "feed_forward_out", width, shape.feed_forward_width, weights);
  if (shape.has_branch_scale) weights.push_back({prefix + "feed_forward_scale", {width}});
  if (has_norms) AddNorm(prefix + "feed_forward_norm", shape.norm_kind, width, weights);
}

void AddPooling(const std::string& name, const std::optional<PoolingDescription>& pooling,
                const LayerShape& layer, Weights& weights) {
  if (!pooling || pooling->dense_width == 0) return;
  const int64_t pooled = layer.hidden_size * static_cast<int64_t>(pooling->modes.size());
  AddLinear(name + ".dense", pooling->dense_width, pooled, weights);
  if (pooling->has_dense_norm) {
    AddNorm(name + ".dense_norm", layer.norm_kind, pooling->dense_width, weights);
  }
  if (pooling->output_width == 0) return;
  AddLinear(name + ".output", pooling->output_width, pooling->dense_width, weights);
}

}  // namespace

std::vector<InputProjection> InputProjections(const LayerShape& shape) {
  std::vector<InputProjection> projections;
  if (!shape.has_input_projection) return projections;
  const int64_t keys = shape.heads * shape.key_width;
  projections.push_back({"query", keys, shape.hidden_size});
  if (!shape.keys_are_queries) projections.push_back({"key", keys, shape.key_inputs()});
  if (!shape.values_are_keys) {
    projections.push_back({"value", shape.context_width(), shape.value_inputs()});
  }
  return projections;
}

std::vector<WeightSpec> ListWeights(const ModelDescription& description) {
  Weights weights;
  const LayerShape& layer = description.layer;
  const int64_t hidden_size = layer.hidden_size;
  if (description.embeddings) AddEmbeddings(*description.embeddings, layer, weights);
  if (description.front) AddFront(*description.front, layer, weights);
  if (layer.relative_positions.kind == RelativePositions::kBuckets) {
    weights.push_back({"relative_positions", {layer.relative_positions.buckets, layer.heads}});
  }
  for (int64_t i = 0; i < description.weight_sets(); ++i)
    AddLayer(description.layer_shape(i), i, weights);
  if (description.has_exit_norm) AddNorm("exit_norm", layer.norm_kind, hidden_size, weights);
  AddPooling("pooling", description.pooling, layer, weights);
  AddPooling("classifier", description.classifier, layer, weights);
  return weights;
}

}  // namespace attendant
