#include "engine/model/pruned_heads.h"

#include <utility>

#include "absl/algorithm/container.h"

namespace attendant {
namespace {

LayerVariant AsTheOthers(const LayerShape& layer) {
  return {.has_attention_norm = layer.norms.has_attention_norm,
          .has_window = layer.attention.window > 0,
          .has_convolution = layer.extras.convolution.taps > 0,
          .rotary = layer.relative_positions.rotary};
}

}  // namespace

bool HasPrunedHeads(const ModelDescription& model) {
  return absl::c_any_of(model.variants,
                        [](const LayerVariant& variant) { return !variant.pruned_heads.empty(); });
}

ModelDescription WithAllHeads(ModelDescription model) {
  if (model.variants.empty()) {
    model.variants.assign(model.weight_sets(), AsTheOthers(model.layer));
  }
  for (LayerVariant& variant : model.variants) variant.pruned_heads.clear();
  return model;
}

std::string WhyNotPrunable(const LayerShape& layer) {
  if (!layer.attention.has_input_projection)
    return "its heads are columns of the hidden states themselves";
  if (!layer.attention.has_output_projection) {
    return "its heads are columns of what it answers, without an output projection";
  }
  if (layer.attention.kind != AttentionKind::kSoftmax)
    return "its attention is no softmax of scores";
  if (layer.relative_positions.kind == RelativePositions::kDisentangled) {
    return "positions are projected for all of its heads";
  }
  if (layer.attention.query_key_norms == QueryKeyNorms::kAllHeads)
    return "its queries and keys are normed over all heads together";
  if (layer.attention.key_value_heads > 0) return "several of its heads share keys and values";
  return "";
}

}  // namespace attendant
