#include "engine/model/weight_source.h"

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
  const int64_t added_width = shape.added_width(layer.hidden_size);
  weights.push_back({"embeddings.word", {shape.vocabulary, shape.width}});
  if (shape.positions > 0) {
    weights.push_back({"embeddings.position", {shape.positions, added_width}});
  }
  if (shape.token_types > 0) {
    weights.push_back({"embeddings.token_type", {shape.token_types, added_width}});
  }
  if (shape.has_norm) {
    AddNorm("embeddings.norm", layer.norm_kind, shape.norm_width(layer.hidden_size), weights);
  }
  if (shape.projected(layer.hidden_size)) {
    AddLinear("embeddings.projection", layer.hidden_size, shape.projected_from(), weights);
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

// Of tables of numbers or of vectors, for every distance.
void AddRelativePositions(const LayerShape& layer, Weights& weights) {
  const RelativePositionShape& relative = layer.relative_positions;
  if (relative.kind == RelativePositions::kBuckets) {
    weights.push_back({"relative_positions", {relative.buckets, layer.heads}});
  }
  if (relative.kind != RelativePositions::kDisentangled) return;
  weights.push_back({"relative_positions", {relative.position_rows(), layer.hidden_size}});
  if (relative.has_norm) {
    AddNorm("relative_positions_norm", layer.norm_kind, layer.hidden_size, weights);
  }
}

void AddPositionProjections(const std::string& prefix, const LayerShape& shape, Weights& weights) {
  const RelativePositionShape& relative = shape.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled || relative.shares_projections) return;
  const int64_t width = shape.heads * shape.key_width;
  if (relative.scores_queries) {
    AddLinear(prefix + "position_key", width, shape.hidden_size, weights);
  }
  if (relative.scores_keys) {
    AddLinear(prefix + "position_query", width, shape.hidden_size, weights);
  }
}

void AddBottleneck(const std::string& name, int64_t out, int64_t in, const LayerShape& shape,
                   Weights& weights) {
  AddLinear(name, out, in, weights);
  AddNorm(name + "_norm", shape.norm_kind, out, weights);
}

void AddFeedForwards(const std::string& prefix, const LayerShape& shape, Weights& weights) {
  const int64_t width = shape.inner_width();
  if (shape.has_gate) {
    AddLinear(prefix + "feed_forward_gate", shape.feed_forward_width, width, weights);
  }
  for (int64_t i = 0; i < shape.feed_forwards; ++i) {
    const std::string block = FeedForwardPrefix(prefix, shape, i);
    AddLinear(block + "feed_forward_in", shape.feed_forward_width, width, weights);
    AddLinear(block + "feed_forward_out", width, shape.feed_forward_width, weights);
    if (shape.has_branch_scale) weights.push_back({prefix + "feed_forward_scale", {width}});
    if (shape.norm_placement != NormPlacement::kNone) {
      AddNorm(block + "feed_forward_norm", shape.norm_kind, width, weights);
    }
  }
}

void AddLayer(const LayerShape& shape, int64_t index, Weights& weights) {
  const std::string prefix = absl::StrCat("layer.", index, ".");
  const int64_t width = shape.inner_width();
  if (shape.bottleneck > 0) {
    AddBottleneck(prefix + "bottleneck_in", width, shape.hidden_size, shape, weights);
    if (shape.values_from_outside) {
      AddBottleneck(prefix + "bottleneck_attention", width, shape.hidden_size, shape, weights);
    }
  }
  for (const auto& [name, out, in] : InputProjections(shape)) {
    AddLinear(prefix + name, out, in, weights);
  }
  if (shape.has_output_projection && shape.heads > 0) {
    AddLinear(prefix + "output", shape.projected_width(), shape.context_width(), weights);
  } else if (shape.has_output_projection) {
    weights.push_back({prefix + "output.bias", {shape.projected_width()}, /*optional=*/true});
  }
  const bool has_norms = shape.norm_placement != NormPlacement::kNone;
  if (shape.has_branch_scale) weights.push_back({prefix + "attention_scale", {width}});
  if (shape.has_query_key_norms) {
    AddNorm(prefix + "query_norm", shape.norm_kind, shape.heads * shape.key_width, weights);
    AddNorm(prefix + "key_norm", shape.norm_kind, shape.heads * shape.key_width, weights);
  }
  if (shape.attention == AttentionKind::kAdditive) {
    weights.push_back({prefix + "score", {shape.heads * shape.key_width}});
  }
  if (shape.attention == AttentionKind::kLinformer) {
    weights.push_back({prefix + "key_mixing", {shape.mixed_keys, shape.mixed_positions}});
    weights.push_back({prefix + "value_mixing", {shape.mixed_keys, shape.mixed_positions}});
  }
  AddPositionProjections(prefix, shape, weights);
  if (has_norms && shape.has_attention_norm)
    AddNorm(prefix + "attention_norm", shape.norm_kind, width, weights);
  if (shape.has_second_attention_norm) {
    AddNorm(prefix + "second_attention_norm", shape.norm_kind, width, weights);
  }
  if (shape.feed_forward_width > 0) AddFeedForwards(prefix, shape, weights);
  if (shape.bottleneck > 0) {
    AddBottleneck(prefix + "bottleneck_out", shape.hidden_size, width, shape, weights);
  }
  if (const ConvolutionShape& convolution = shape.convolution; convolution.taps > 0) {
    weights.push_back(
        {prefix + "convolution.weight", {width, width / convolution.groups, convolution.taps}});
    weights.push_back({prefix + "convolution.bias", {width}, /*optional=*/true});
    AddNorm(prefix + "convolution_norm", shape.norm_kind, width, weights);
  }
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
  if (!shape.has_input_projection || shape.heads == 0) return projections;
  const int64_t keys = shape.heads * shape.key_width;
  projections.push_back({"query", keys, shape.inner_width()});
  if (!shape.keys_are_queries) projections.push_back({"key", keys, shape.key_inputs()});
  if (!shape.values_are_keys) {
    projections.push_back({"value", shape.context_width(), shape.value_inputs()});
  }
  return projections;
}

CheckedSize InputProjectionWidth(const LayerShape& layer) {
  if (!layer.has_input_projection) return 0;
  const CheckedSize heads = layer.heads;
  CheckedSize width = heads * layer.key_width;
  if (!layer.keys_are_queries) width = width + heads * layer.key_width;
  if (!layer.values_are_keys) width = width + heads * layer.value_width;
  return width;
}

std::string FeedForwardPrefix(const std::string& prefix, const LayerShape& shape, int64_t i) {
  return i + 1 == shape.feed_forwards ? prefix : absl::StrCat(prefix, "before.", i, ".");
}

std::vector<WeightSpec> ListWeights(const ModelDescription& description) {
  Weights weights;
  const LayerShape& layer = description.layer;
  const int64_t hidden_size = layer.hidden_size;
  if (description.embeddings) AddEmbeddings(*description.embeddings, layer, weights);
  if (description.front) AddFront(*description.front, layer, weights);
  AddRelativePositions(layer, weights);
  for (int64_t i = 0; i < description.weight_sets(); ++i)
    AddLayer(description.layer_shape(i), i, weights);
  if (description.has_exit_norm) AddNorm("exit_norm", layer.norm_kind, hidden_size, weights);
  AddPooling("pooling", description.pooling, layer, weights);
  AddPooling("classifier", description.classifier, layer, weights);
  return weights;
}

}  // namespace attendant
