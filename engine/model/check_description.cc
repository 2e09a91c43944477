#include "engine/model/check_description.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/model/check_parts.h"
#include "engine/model/load_plan.h"

namespace attendant {
namespace {

void RequireSizes(const ModelDescription& model, Rules& rules) {
  const int64_t layers = model.embeddings && model.layers == 0 ? 1 : model.layers;
  const std::pair<const char*, int64_t> sizes[] = {
      {"layers", layers},
      {"hidden_size", model.layer.hidden_size},
      {"heads", model.layer.attention.heads},
      {"key_width", model.layer.attention.key_width},
      {"value_width", model.layer.attention.value_width}};
  for (const auto& [name, size] : sizes) {
    rules.Require(size >= 1, name, ": expected at least 1; got ", size);
  }
}

// Disentangled attention scores queries or keys, and has relative position embeddings.
void RequireDistances(const LayerShape& layer, Rules& rules) {
  const RelativePositionShape& relative = layer.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled) return;
  rules.Require(relative.scores_queries || relative.scores_keys,
                "disentangled attention requires scores_queries or scores_keys");
  const bool has_rows =
      relative.buckets == 0
          ? relative.max_distance > 0
          : relative.buckets > 1 && relative.max_distance > relative.buckets / 2 + 1;
  rules.Require(has_rows,
                "relative_positions: expected 0 buckets and a positive max_distance, or at least 2 "
                "buckets and max_distance above buckets / 2 + 1; got ",
                relative.buckets, " buckets and max_distance ", relative.max_distance);
}

void RequireListedBlocks(const AttentionPattern& pattern, Rules& rules) {
  const auto pairs = pattern.listed.pairs();
  const auto globals = pattern.listed.globals();
  int64_t lowest = globals.empty() ? 0 : globals.front();
  int64_t highest = globals.empty() ? 0 : globals.back();
  for (const BlockPair& pair : pairs) {
    lowest = std::min({lowest, pair.query, pair.key});
    highest = std::max({highest, pair.query, pair.key});
  }
  const int64_t last = std::numeric_limits<int32_t>::max() / pattern.block;
  rules.Require(lowest >= 0 && highest <= last &&
                    std::adjacent_find(pairs.begin(), pairs.end()) == pairs.end() &&
                    std::adjacent_find(globals.begin(), globals.end()) == globals.end(),
                "expected distinct block pairs and distinct global blocks in 0..", last,
                "; got blocks ", lowest, "..", highest);
}

void RequirePattern(const LayerShape& layer, Rules& rules) {
  const AttentionBlockShape& attention = layer.attention;
  const AttentionPattern& pattern = attention.pattern;
  rules.Require(attention.window >= 0, "window: expected at least 0; got ", attention.window);
  const int64_t lowest = std::min(
      {pattern.first_global, pattern.last_global, pattern.first_repeats, pattern.full_up_to});
  const bool fits =
      pattern.block >= 1 && lowest >= 0 && (attention.window != 0 || pattern == AttentionPattern());
  rules.Require(
      fits,
      "attention pattern: expected a window, blocks of at least 1 position and no negative counts; "
      "got a window of ",
      attention.window, ", blocks of ", pattern.block, " and a lowest count of ", lowest);
  if (!fits) return;
  const CheckedSize reach =
      CheckedSize(2) * attention.window + CheckedSize(1) + pattern.first_global +
      pattern.last_global + static_cast<int64_t>(pattern.listed.globals().size()) +
      CheckedSize(pattern.block) * static_cast<int64_t>(pattern.listed.pairs().size());
  const CheckedSize operations =
      CheckedSize(pattern.block) * reach * (CheckedSize(2) * attention.heads * attention.key_width);
  rules.Require(operations.ok(),
                "expected fewer blocks; got an attention pattern whose cost overflows 64 bits");
  RequireListedBlocks(pattern, rules);
}

void RequireAttentionKind(const LayerShape& layer, Rules& rules) {
  const auto& [keys, positions] = layer.attention.linformer;
  const bool is_linformer = layer.attention.kind == AttentionKind::kLinformer;
  const char* const kind = Name(layer.attention.kind);
  rules.Require(is_linformer ? keys > 0 && positions > 0 : keys == 0 && positions == 0,
                "linformer: expected positive numbers of positions and keys in linformer "
                "attention, and 0 in other attention; got ",
                positions, " positions and ", keys, " keys in ", kind, " attention");
  const RelativePositionShape& relative = layer.relative_positions;
  const bool is_softmax = layer.attention.kind == AttentionKind::kSoftmax;
  const bool is_disentangled = relative.kind == RelativePositions::kDisentangled;
  const bool scores_pairs = ScoresPairs(layer.attention.kind);
  rules.Require(scores_pairs || layer.attention.window == 0, kind,
                " attention cannot be combined with a window");
  rules.Require((is_softmax || !is_disentangled) && (scores_pairs || !relative.adds_to_scores()),
                kind, " attention cannot be combined with ", Name(relative.kind), " positions");
}

void RequireSharedHeads(const LayerShape& layer, Rules& rules) {
  const AttentionBlockShape& attention = layer.attention;
  const bool is_plain = attention.kind == AttentionKind::kSoftmax &&
                        layer.relative_positions.kind != RelativePositions::kDisentangled;
  const int64_t shared = attention.key_value_heads;
  rules.Require(
      shared == 0 || (shared > 0 && shared < attention.heads && attention.heads % shared == 0 &&
                      is_plain && !attention.keys_are_queries && !attention.values_are_keys),
      "expected key_value_heads to be a proper divisor of heads ", attention.heads,
      ", in softmax attention with separate projections of queries, keys and values and without "
      "disentangled positions; got ",
      shared);
  const bool has_pattern = attention.pattern != AttentionPattern();
  rules.Require(!attention.causal || (is_plain && !has_pattern),
                "causal attention requires softmax attention without disentangled positions and "
                "without a block pattern; got ",
                Name(attention.kind), " attention with ", Name(layer.relative_positions.kind),
                " positions", has_pattern ? " and a block pattern" : "");
}

// Rules for the parts of a layer with a bottleneck, and for the number of feed-forward blocks.
void RequireBottleneck(const LayerShape& layer, Rules& rules) {
  const AttentionBlockShape& attention = layer.attention;
  const BottleneckShape& bottleneck = layer.extras.bottleneck;
  const bool fits = layer.norms.placement == NormPlacement::kPost &&
                    layer.norms.has_attention_norm && attention.has_output_projection &&
                    attention.output_width == 0 && attention.has_input_projection &&
                    layer.feed_forward.width > 0 && !layer.extras.has_branch_scale &&
                    attention.key_input_width == 0 && attention.value_input_width == 0 &&
                    layer.relative_positions.kind != RelativePositions::kDisentangled;
  rules.Require(bottleneck.width == 0 || (bottleneck.width > 0 && fits),
                "bottleneck: expected a positive width in a post-norm layer with input and output "
                "projections and a feed-forward block, without a branch scale, cross-attention or "
                "disentangled positions; got width ",
                bottleneck.width);
  rules.Require(
      !bottleneck.values_from_outside || (bottleneck.width != 0 && !attention.values_are_keys),
      "bottleneck.values_from_outside requires a bottleneck and a separate value projection");
  constexpr int64_t kMostBlocks = 1024;
  const FeedForwardShape& feed_forward = layer.feed_forward;
  const bool may_repeat =
      feed_forward.width != 0 && !feed_forward.has_gate && !layer.extras.has_branch_scale;
  rules.Require(feed_forward.blocks == 1 ||
                    (feed_forward.blocks > 1 && feed_forward.blocks <= kMostBlocks && may_repeat),
                "expected 1 feed-forward block, or up to ", kMostBlocks,
                " without a gate or branch scale; got ", feed_forward.blocks);
}

void RequireMixture(const LayerShape& layer, Rules& rules) {
  const auto& [experts, per_token] = layer.feed_forward.mixture;
  const bool fits = experts > 0 && experts <= kMostExperts && per_token > 0 &&
                    per_token <= experts && layer.feed_forward.width > 0 &&
                    layer.feed_forward.blocks == 1 && !layer.extras.has_branch_scale &&
                    layer.extras.bottleneck.width == 0;
  rules.Require(fits || (experts == 0 && per_token == 0), "expected up to ", kMostExperts,
                " experts, at least 1 and at most all of them per token, in a layer with one "
                "feed-forward block and without a branch scale or bottleneck; got ",
                per_token, " of ", experts);
}

void RequireConvolution(const LayerShape& layer, Rules& rules) {
  constexpr int64_t kMostTaps = 1023;
  const auto& [taps, groups, activation] = layer.extras.convolution;
  const bool fits = taps % 2 == 1 && taps > 0 && taps <= kMostTaps && groups > 0 &&
                    layer.hidden_size % groups == 0 &&
                    layer.norms.placement == NormPlacement::kPost &&
                    layer.extras.bottleneck.width == 0;
  rules.Require(fits || taps == 0, "convolution: expected an odd number of taps up to ", kMostTaps,
                " and groups that divide hidden_size ", layer.hidden_size,
                ", in a post-norm layer without a bottleneck; got ", taps, " taps in ", groups,
                " groups");
}

void RequireEmbeddings(const EmbeddingShape& embeddings, int64_t hidden_size, Rules& rules) {
  rules.Require(IsFloat(embeddings.table_type) && ByteWidth(embeddings.table_type) <= 4,
                "embeddings: expected tables of float32, float16 or bfloat16; got ",
                Name(embeddings.table_type));
  rules.Require(embeddings.task_types <= 0 || embeddings.token_types != 0,
                "embeddings: task types require token types");
  const bool has_tables = embeddings.positions > 0 || embeddings.token_types > 0;
  rules.Require(embeddings.mask_id < 0 || (!has_tables && !embeddings.projects_words),
                "embeddings: mask_id cannot be combined with position embeddings, token types or a "
                "projection of word embeddings");
  const bool projects = embeddings.norm_is_last && embeddings.projected(hidden_size);
  rules.Require(embeddings.projects_words ? projects : !embeddings.has_neighbours,
                "embeddings: has_neighbours requires projects_words, which cannot be combined with "
                "a projection after the norm");
}

void RequireNorms(const LayerShape& layer, Rules& rules) {
  rules.Require(layer.norms.has_attention_norm || layer.norms.are_first(),
                "a layer without an attention norm must be a pre-norm layer");
  const bool bare = layer.norms.placement == NormPlacement::kNone;
  rules.Require(!bare || layer.feed_forward.width <= 0,
                "feed_forward.width: expected 0 (the layer has no residuals); got ",
                layer.feed_forward.width);
  rules.Require(bare || !layer.extras.has_branch_scale || layer.attention.has_output_projection,
                "a branch scale requires an output projection");
  rules.Require(
      !layer.extras.has_second_attention_norm || layer.norms.placement == NormPlacement::kPost,
      "a second attention norm requires a post-norm layer");
}

void RequirePatchEmbedding(const PatchEmbeddingShape& shape, bool has_embeddings, Rules& rules) {
  rules.Require(shape.feature_width == 0 || (shape.feature_width > 0 && !has_embeddings),
                "patch_embedding.feature_width: expected ",
                has_embeddings ? "0 in a model with embeddings" : "at least 0", "; got ",
                shape.feature_width);
  rules.Require(shape.positions >= 0 && shape.registers >= 0 &&
                    (shape.positions == 0 || shape.features() >= 1) &&
                    (shape.has_class || !shape.has_distillation),
                "patch_embedding: expected at least 0 registers, no positions or more than there "
                "are class and distillation tokens, and a class token with a distillation token; "
                "got ",
                shape.registers, " registers, ", shape.positions, " positions and ",
                shape.prefix_positions(), " class and distillation tokens");
}

void RequireRotary(const LayerShape& layer, Rules& rules) {
  if (layer.relative_positions.kind != RelativePositions::kRotary) return;
  const RotaryShape& rotary = layer.relative_positions.rotary;
  const int64_t key_width = layer.attention.key_width;
  rules.Require(rotary.width() >= 2 && rotary.width() <= key_width, "expected 2..", key_width,
                " rotary columns (at most key_width); got ", rotary.width());
  for (const double frequency : rotary.frequencies) {
    rules.Require(frequency >= 0 && std::isfinite(frequency),
                  "expected finite rotary frequencies of at least 0; got ", frequency);
  }
  rules.Require(rotary.amplitude > 0 && std::isfinite(rotary.amplitude),
                "expected a positive, finite rotary amplitude; got ", rotary.amplitude);
}

void RequireAttentionWidth(const ModelDescription& model, Rules& rules) {
  const LayerShape& layer = model.layer;
  const bool needs_hidden_size = layer.norms.placement != NormPlacement::kNone ||
                                 model.has_exit_norm || !model.dense_heads().empty() ||
                                 model.vocabulary_head;
  rules.Require(!needs_hidden_size || layer.attention_width() == layer.inner_width(),
                "expected attention outputs of hidden_size ", layer.hidden_size, " columns; got ",
                layer.attention_width());
}

// Queries, keys and values that share columns have the same width, and positions and norms that
// apply to only some of them are not supported.
void RequireSharing(const LayerShape& layer, Rules& rules) {
  const AttentionBlockShape& attention = layer.attention;
  rules.Require(!attention.values_are_keys || attention.value_width == attention.key_width,
                "expected value_width ", attention.key_width,
                " (keys and values share a projection of this key_width); got ",
                attention.value_width);
  const bool all_share = attention.keys_are_queries && attention.values_are_keys;
  rules.Require(
      attention.has_input_projection || (all_share && layer.context_width() == layer.hidden_size),
      "expected shared queries, keys and values of hidden_size ", layer.hidden_size,
      " columns (the layer has no input projection); got ", all_share ? "" : "separate ones of ",
      layer.context_width(), " columns");
  const RelativePositions kind = layer.relative_positions.kind;
  const bool needs_own = kind == RelativePositions::kRotary ||
                         kind == RelativePositions::kDisentangled ||
                         attention.query_key_norms != QueryKeyNorms::kNone;
  rules.Require(!needs_own || !(attention.keys_are_queries || attention.values_are_keys),
                "expected separate projections of queries, keys and values (the layer has rotary "
                "or disentangled positions or query and key norms); got a shared projection");
}

void RequireCrossKvInputs(const LayerShape& layer, Rules& rules) {
  const AttentionBlockShape& attention = layer.attention;
  rules.Require(
      !layer.needs_cross_kv() || (layer.takes_cross_kv() && attention.has_input_projection &&
                                  !attention.keys_are_queries && !attention.values_are_keys),
      "expected separate projections of queries, keys and values, and no relative "
      "positions, causal mask or window, in a layer that projects them from inputs of "
      "different widths; got widths ",
      layer.hidden_size, ", ", layer.key_inputs(), " and ", layer.value_inputs());
}

using LayerRule = void (*)(const LayerShape& layer, Rules& rules);

// The second list is for models that have layers, and whose sizes do not overflow.
constexpr LayerRule kLayerRules[] = {RequireDistances,   RequirePattern,    RequireAttentionKind,
                                     RequireSharedHeads, RequireBottleneck, RequireMixture,
                                     RequireConvolution};
constexpr LayerRule kSizedLayerRules[] = {RequireNorms, RequireSharing, RequireCrossKvInputs};

void RequireOfLayers(absl::Span<const LayerRule> list, const ModelDescription& model,
                     Rules& rules) {
  for (const LayerRule require : list) require(model.layer, rules);
  for (const LayerShape& layer : model.layer_shapes) {
    for (const LayerRule require : list) require(layer, rules);
  }
}

}  // namespace

absl::Status CheckDescription(const ModelDescription& model) {
  Rules rules("model description: ");
  RequireSizes(model, rules);
  RequireLayerShapes(model, rules);
  RequireHeads(model, rules);
  RequireOfLayers(kLayerRules, model, rules);
  if (model.embeddings) RequireEmbeddings(*model.embeddings, model.layer.hidden_size, rules);
  RETURN_IF_ERROR(rules.status());
  rules.Require(LoadBytes(model, {}).ok(), "a size is negative, or sizes overflow 64 bits");
  RETURN_IF_ERROR(rules.status());
  if (model.layers == 0) {
    rules.Require(model.embeddings && !model.patch_embedding && !model.has_exit_norm,
                  "a model without layers requires embeddings and cannot have a patch embedding or "
                  "a final norm");
    return rules.status();
  }
  RequireAttentionWidth(model, rules);
  RequireOfLayers(kSizedLayerRules, model, rules);
  if (model.patch_embedding) {
    RequirePatchEmbedding(*model.patch_embedding, model.embeddings.has_value(), rules);
  }
  for (int64_t i = 0; i < model.weight_sets(); ++i) RequireRotary(model.layer_shape(i), rules);
  return rules.status();
}

}  // namespace attendant
