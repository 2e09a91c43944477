#include "engine/model/pruned_heads.h"

#include "absl/algorithm/container.h"

namespace attendant {
bool HasPrunedHeads(const ModelDescription& model) {
  return absl::c_any_of(model.layer_shapes, [&](const LayerShape& layer) {
    return layer.attention.heads < model.layer.attention.heads;
  });
}

ModelDescription WithAllHeads(ModelDescription model) {
  for (LayerShape& layer : model.layer_shapes) {
    layer.attention.heads = model.layer.attention.heads;
    layer.attention.head_numbers.clear();
  }
  model.ShareShapes();
  return model;
}

LayerShape WithoutHeads(LayerShape layer, absl::Span<const int64_t> pruned) {
  if (pruned.empty()) return layer;
  AttentionBlockShape& attention = layer.attention;
  for (int64_t head = 0; head < attention.heads; ++head) {
    if (!absl::c_binary_search(pruned, head)) attention.head_numbers.push_back(head);
  }
  attention.heads = static_cast<int64_t>(attention.head_numbers.size());
  return layer;
}

std::string WhyNotPrunable(const LayerShape& layer) {
  if (!layer.attention.has_input_projection)
    return "it has no input projection, so its heads are columns of the hidden states";
  if (!layer.attention.has_output_projection) {
    return "it has no output projection, so its heads are columns of its output";
  }
  if (layer.attention.kind != AttentionKind::kSoftmax)
    return "its attention is not softmax attention";
  if (layer.relative_positions.kind == RelativePositions::kDisentangled) {
    return "its relative positions are projected for all heads together";
  }
  if (layer.attention.query_key_norms == QueryKeyNorms::kAllHeads)
    return "its query and key norms span all heads";
  if (layer.attention.key_value_heads > 0) return "its heads share keys and values";
  return "";
}

}  // namespace attendant
