#include "engine/model/check_parts.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "engine/model/pruned_heads.h"

namespace attendant {
namespace {

// Only the pooling supports attention: the other heads have no query.
void RequireAttention(HeadKind kind, const PoolingDescription& shape, const LayerShape& layer,
                      Rules& rules) {
  if (!absl::c_linear_search(shape.modes, PoolingMode::kAttention)) return;
  const int64_t heads = layer.attention.heads;
  const bool divides = heads > 0 && layer.hidden_size % heads == 0;
  rules.Require(
      kind == HeadKind::kPooling && shape.attends() && divides && shape.dense_width > 0,
      "attention pooling: expected the only mode of a pooling with a dense layer, and heads that "
      "divide hidden_size ",
      layer.hidden_size, "; got ", shape.modes.size(), " modes of ", Name(kind), ", dense_width ",
      shape.dense_width, " and ", heads, " heads");
}

// A layer's input can only be added to an output of the same width.
void RequireResiduals(const PoolingDescription& shape, int64_t hidden_size, Rules& rules) {
  int64_t width = shape.input_width(hidden_size);
  rules.Require(shape.dense_width > 0 || shape.dense_residual != Residual::kInput,
                "expected a dense layer of width ", width, " (its input is added); got ",
                shape.dense_width);
  for (const auto& [name, dense] : shape.dense_layers()) {
    const int64_t in = std::exchange(width, dense.width);
    rules.Require(in == dense.width || dense.residual != Residual::kInput,
                  "expected a dense layer of width ", in, " (its input is added); got ",
                  dense.width);
  }
}

void RequireDenseHead(HeadKind kind, const PoolingDescription& shape, const LayerShape& layer,
                      Rules& rules) {
  const bool is_of_tokens = kind == HeadKind::kTokenHead || kind == HeadKind::kLexical;
  rules.Require(!is_of_tokens || shape.modes.empty(), Name(kind),
                ": expected 0 pooling modes; got ", shape.modes.size());
  const bool has_second = shape.output_width > 0 || !shape.further_dense.empty();
  rules.Require(shape.dense_width != 0 || !has_second, Name(kind),
                ": expected a dense layer after pooling before a second dense layer; got "
                "dense_width 0");
  RequireAttention(kind, shape, layer, rules);
  const int64_t block = shape.block.width;
  rules.Require(block == 0 || (block > 0 && shape.dense_width != 0), Name(kind),
                ": expected a feed-forward block of positive width after a dense layer; got width ",
                block, " after dense_width ", shape.dense_width);
  for (const DenseShape& dense : shape.further_dense) {
    rules.Require(dense.width > 0, Name(kind), ": expected dense layers of positive width; got ",
                  dense.width);
  }
  RequireResiduals(shape, layer.hidden_size, rules);
  const bool is_late = absl::c_linear_search(shape.modes, PoolingMode::kLateMean);
  rules.Require(!is_late || (kind == HeadKind::kClassifier && shape.modes.size() == 1),
                Name(PoolingMode::kLateMean),
                ": expected the only pooling mode of a classifier; got ", shape.modes.size(),
                " modes of ", Name(kind));
}

// The weight sets are numbered from 0 without gaps, and each belongs to a layer.
void RequireLayerMap(const ModelDescription& model, Rules& rules) {
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
void RequireRemainingHeads(const LayerShape& layer, int64_t all, Rules& rules) {
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

void RequireHeads(const ModelDescription& model, Rules& rules) {
  for (const auto& [kind, shape] : model.dense_heads()) {
    RequireDenseHead(kind, *shape, model.layer, rules);
  }
  const char* without_embeddings = model.embeddings ? "" : " without embeddings";
  if (model.lexical_head) {
    const int64_t width = model.lexical_head->width(model.layer.hidden_size);
    rules.Require(
        width == 1 && model.embeddings && !model.vocabulary_head,
        "lexical_head: expected width 1 in a model with embeddings and without an MLM head; got ",
        width, without_embeddings, model.vocabulary_head ? " with an MLM head" : "");
  }
  if (model.vocabulary_head) {
    rules.Require(model.embeddings && model.vocabulary_head->width > 0,
                  "vocabulary_head: expected a positive width in a model with embeddings; got ",
                  model.vocabulary_head->width, without_embeddings);
  }
}

void RequireLayerShapes(const ModelDescription& model, Rules& rules) {
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
