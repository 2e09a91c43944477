#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "engine/model/check_parts.h"
#include "engine/model/pruned_heads.h"

namespace attendant {
namespace {

// The weight sets are numbered from 0 without gaps, and each belongs to a layer.
void RequireLayerMap(const ModelDescription& model, DescriptionRules& rules) {
  if (model.layer_map.empty()) return;
  std::vector<int64_t> sets = model.layer_map;
  std::sort(sets.begin(), sets.end());
  bool fits = static_cast<int64_t>(sets.size()) == model.layers && sets.front() == 0;
  for (size_t i = 1; i < sets.size(); ++i) fits = fits && sets[i] - sets[i - 1] <= 1;
  rules.Require(fits, "layer_map: expected ", model.layers,
                " weight sets, numbered from 0 without gaps; got ",
                absl::StrJoin(model.layer_map, " "));
}

// `all` is the number of heads in the checkpoint.
void RequireRemainingHeads(const LayerShape& layer, int64_t all, DescriptionRules& rules) {
  const std::vector<int64_t>& heads = layer.attention.head_numbers;
  if (layer.attention.heads == all && heads.empty()) return;
  const bool in_order =
      std::adjacent_find(heads.begin(), heads.end(), std::greater_equal<>()) == heads.end();
  const bool in_range = heads.empty() || (heads.front() >= 0 && heads.back() < all);
  rules.Require(layer.attention.heads < all && std::ssize(heads) == layer.attention.heads &&
                    in_range && in_order,
                "head_numbers: expected ", layer.attention.heads, " remaining heads of ", all,
                ", in ascending order; got ", absl::StrJoin(heads, " "));
  const std::string reason = WhyNotPrunable(layer);
  rules.Require(reason.empty(), "heads cannot be pruned: ", reason);
}

// Whether buffers and tables for `all` are large enough for the layer.
bool FitsInto(LayerShape layer, const LayerShape& all) {
  if (layer.attention.window > all.attention.window || layer.attention.key_width < 1 ||
      layer.attention.key_width > all.attention.key_width ||
      layer.feed_forward.width > all.feed_forward.width ||
      (layer.feed_forward.has_gate && !all.feed_forward.has_gate) ||
      (layer.feed_forward.mixture.experts > 0 &&
       layer.feed_forward.mixture != all.feed_forward.mixture) ||
      layer.extras.convolution.taps > all.extras.convolution.taps) {
    return false;
  }
  layer.attention.heads = all.attention.heads;
  layer.attention.head_numbers.clear();
  layer.attention.window = all.attention.window;
  layer.attention.pattern = all.attention.pattern;
  if (layer.attention.kind == AttentionKind::kSoftmax) {
    layer.attention.key_width = all.attention.key_width;
    layer.attention.score_scale = all.attention.score_scale;
  }
  layer.relative_positions.rotary = all.relative_positions.rotary;
  layer.feed_forward = all.feed_forward;
  layer.norms.has_attention_norm = all.norms.has_attention_norm;
  layer.norms.last_epsilon = all.norms.last_epsilon;
  layer.extras.convolution = all.extras.convolution;
  return layer == all;
}

}  // namespace

void RequireLayerShapes(const ModelDescription& model, DescriptionRules& rules) {
  RequireLayerMap(model, rules);
  rules.Require(model.layer.attention.head_numbers.empty(),
                "layer: expected the common shape to have all heads; got pruned heads");
  if (model.layer_shapes.empty()) return;
  rules.Require(std::ssize(model.layer_shapes) == model.weight_sets(),
                "layer_shapes: expected 0 or ", model.weight_sets(), " (one per weight set); got ",
                model.layer_shapes.size());
  for (const LayerShape& layer : model.layer_shapes) {
    rules.Require(
        FitsInto(layer, model.layer),
        "layer_shapes: expected layers that fit into the common shape, and differ from it only in "
        "windows, rotary positions, key widths, pruned heads, convolutions, feed-forward blocks, "
        "mixtures or the norm before attention");
    RequireRemainingHeads(layer, model.layer.attention.heads, rules);
  }
}

}  // namespace attendant
