#include "engine/model/check_description.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/model/check_parts.h"
#include "engine/model/load_plan.h"

namespace attendant {
namespace {

// Queries, keys and values that share columns have the same width, and positions and norms that
// apply to only some of them are not supported.
absl::Status CheckSharing(const LayerShape& layer) {
  if (layer.attention.values_are_keys && layer.attention.value_width != layer.attention.key_width) {
    return BadModel("expected value_width ", layer.attention.key_width,
                    " (keys and values share a projection of this key_width); got ",
                    layer.attention.value_width);
  }
  if (!layer.attention.has_input_projection &&
      (!layer.attention.keys_are_queries || !layer.attention.values_are_keys ||
       layer.context_width() != layer.hidden_size)) {
    return BadModel("expected shared queries, keys and values of hidden_size ", layer.hidden_size,
                    " columns (the layer has no input projection); got ",
                    layer.attention.keys_are_queries && layer.attention.values_are_keys
                        ? ""
                        : "separate ones of ",
                    layer.context_width(), " columns");
  }
  const bool shares = layer.attention.keys_are_queries || layer.attention.values_are_keys;
  const RelativePositions kind = layer.relative_positions.kind;
  if (shares && (kind == RelativePositions::kRotary || kind == RelativePositions::kDisentangled ||
                 layer.attention.query_key_norms != QueryKeyNorms::kNone)) {
    return BadModel(
        "expected separate projections of queries, keys and values (the layer has rotary or "
        "disentangled positions or query and key norms); got a shared projection");
  }
  return absl::OkStatus();
}

absl::Status CheckSharedHeads(const LayerShape& layer) {
  const AttentionBlockShape& attention = layer.attention;
  const bool is_disentangled = layer.relative_positions.kind == RelativePositions::kDisentangled;
  const int64_t shared = attention.key_value_heads;
  if (shared != 0 && (shared < 0 || shared >= attention.heads || attention.heads % shared != 0 ||
                      attention.kind != AttentionKind::kSoftmax || is_disentangled ||
                      attention.keys_are_queries || attention.values_are_keys)) {
    return BadModel("expected key_value_heads to be a proper divisor of heads ", attention.heads,
                    ", in softmax attention with separate projections of queries, keys and values "
                    "and without disentangled positions; got ",
                    shared);
  }
  if (attention.causal && (attention.kind != AttentionKind::kSoftmax || is_disentangled ||
                           attention.pattern != AttentionPattern())) {
    return BadModel(
        "causal attention requires softmax attention without disentangled positions and without a "
        "block pattern; got ",
        Name(attention.kind), " attention with ", Name(layer.relative_positions.kind), " positions",
        attention.pattern == AttentionPattern() ? "" : " and a block pattern");
  }
  return absl::OkStatus();
}

absl::Status CheckCrossKvInputs(const LayerShape& layer) {
  if (!layer.needs_cross_kv() ||
      (layer.takes_cross_kv() && layer.attention.has_input_projection &&
       !layer.attention.keys_are_queries && !layer.attention.values_are_keys)) {
    return absl::OkStatus();
  }
  return BadModel(
      "expected separate projections of queries, keys and values, and no relative positions, "
      "causal mask or window, in a layer that projects them from inputs of different widths; got "
      "widths ",
      layer.hidden_size, ", ", layer.key_inputs(), " and ", layer.value_inputs());
}

absl::Status CheckListedBlocks(const LayerShape& layer) {
  const AttentionPattern& pattern = layer.attention.pattern;
  const auto pairs = pattern.listed.pairs();
  const auto globals = pattern.listed.globals();
  int64_t lowest = globals.empty() ? 0 : globals.front();
  int64_t highest = globals.empty() ? 0 : globals.back();
  for (const BlockPair& pair : pairs) {
    lowest = std::min({lowest, pair.query, pair.key});
    highest = std::max({highest, pair.query, pair.key});
  }
  constexpr int64_t kMostPositions = std::numeric_limits<int32_t>::max();
  if (lowest < 0 || highest > kMostPositions / pattern.block ||
      std::adjacent_find(pairs.begin(), pairs.end()) != pairs.end() ||
      std::adjacent_find(globals.begin(), globals.end()) != globals.end()) {
    return BadModel("expected distinct block pairs and distinct global blocks in 0..",
                    kMostPositions / pattern.block, "; got blocks ", lowest, "..", highest);
  }
  const CheckedSize scores =
      CheckedSize(pattern.block) * pattern.block * static_cast<int64_t>(pairs.size());
  if ((scores * (CheckedSize(2) * layer.attention.heads * layer.attention.key_width)).ok())
    return absl::OkStatus();
  return BadModel("expected fewer blocks; got an attention pattern whose cost overflows 64 bits");
}

absl::Status CheckWindow(const LayerShape& layer) {
  if (layer.attention.window < 0) {
    return BadModel("window: expected at least 0; got ", layer.attention.window);
  }
  const AttentionPattern& pattern = layer.attention.pattern;
  const int64_t lowest = std::min(
      {pattern.first_global, pattern.last_global, pattern.first_repeats, pattern.full_up_to});
  if (pattern.block < 1 || lowest < 0 ||
      (layer.attention.window == 0 && pattern != AttentionPattern())) {
    return BadModel(
        "attention pattern: expected a window, blocks of at least 1 position and no negative "
        "counts; got a window of ",
        layer.attention.window, ", blocks of ", pattern.block, " and a lowest count of ", lowest);
  }
  const CheckedSize reach =
      CheckedSize(pattern.block) *
      (CheckedSize(2) * layer.attention.window + CheckedSize(1) + pattern.first_global +
       pattern.last_global + static_cast<int64_t>(pattern.listed.globals().size()));
  if (reach.ok() &&
      (reach * (CheckedSize(2) * layer.attention.heads * layer.attention.key_width)).ok()) {
    return CheckListedBlocks(layer);
  }
  return BadModel("expected fewer blocks; got an attention pattern whose cost overflows 64 bits");
}

// Checks which parts a layer with a bottleneck has, and the number of its feed-forward blocks.
absl::Status CheckBottleneck(const LayerShape& layer) {
  const bool fits = layer.norms.placement == NormPlacement::kPost &&
                    layer.norms.has_attention_norm && layer.attention.has_output_projection &&
                    layer.attention.output_width == 0 && layer.attention.has_input_projection &&
                    layer.feed_forward.width > 0 && !layer.extras.has_branch_scale &&
                    layer.attention.key_input_width == 0 &&
                    layer.attention.value_input_width == 0 &&
                    layer.relative_positions.kind != RelativePositions::kDisentangled;
  if (layer.extras.bottleneck.width < 0 || (layer.extras.bottleneck.width > 0 && !fits)) {
    return BadModel(
        "bottleneck: expected a positive width in a post-norm layer with input and output "
        "projections and a feed-forward block, without a branch scale, cross-attention or "
        "disentangled positions; got width ",
        layer.extras.bottleneck.width);
  }
  if (layer.extras.bottleneck.values_from_outside &&
      (layer.extras.bottleneck.width == 0 || layer.attention.values_are_keys)) {
    return BadModel(
        "bottleneck.values_from_outside requires a bottleneck and a separate value projection");
  }
  constexpr int64_t kMostBlocks = 1024;
  if (layer.feed_forward.blocks < 1 || layer.feed_forward.blocks > kMostBlocks ||
      (layer.feed_forward.blocks > 1 &&
       (layer.feed_forward.width == 0 || layer.feed_forward.has_gate ||
        layer.extras.has_branch_scale))) {
    return BadModel("expected 1 feed-forward block, or up to ", kMostBlocks,
                    " without a gate or branch scale; got ", layer.feed_forward.blocks);
  }
  return absl::OkStatus();
}

absl::Status CheckMixture(const LayerShape& layer) {
  const auto& [experts, per_token] = layer.feed_forward.mixture;
  if (experts == 0 && per_token == 0) return absl::OkStatus();
  if (experts > 0 && experts <= kMostExperts && per_token > 0 && per_token <= experts &&
      layer.feed_forward.width > 0 && layer.feed_forward.blocks == 1 &&
      !layer.extras.has_branch_scale && layer.extras.bottleneck.width == 0) {
    return absl::OkStatus();
  }
  return BadModel("expected up to ", kMostExperts,
                  " experts, at least 1 and at most all of them per token, in a layer with one "
                  "feed-forward block and without a branch scale or bottleneck; got ",
                  per_token, " of ", experts);
}

absl::Status CheckConvolution(const LayerShape& layer) {
  constexpr int64_t kMostTaps = 1023;
  const auto& [taps, groups, activation] = layer.extras.convolution;
  if (taps == 0) return absl::OkStatus();
  if (taps % 2 == 1 && taps > 0 && taps <= kMostTaps && groups > 0 &&
      layer.hidden_size % groups == 0 && layer.norms.placement == NormPlacement::kPost &&
      layer.extras.bottleneck.width == 0) {
    return absl::OkStatus();
  }
  return BadModel("convolution: expected an odd number of taps up to ", kMostTaps,
                  " and groups that divide hidden_size ", layer.hidden_size,
                  ", in a post-norm layer without a bottleneck; got ", taps, " taps in ", groups,
                  " groups");
}

absl::Status CheckEmbeddings(const ModelDescription& model) {
  if (!model.embeddings) return absl::OkStatus();
  const EmbeddingShape& embeddings = *model.embeddings;
  if (!IsFloat(embeddings.table_type) || ByteWidth(embeddings.table_type) > 4) {
    return BadModel("embeddings: expected tables of float32, float16 or bfloat16; got ",
                    Name(embeddings.table_type));
  }
  if (embeddings.task_types > 0 && embeddings.token_types == 0) {
    return BadModel("embeddings: task types require token types");
  }
  const bool has_tables = embeddings.positions > 0 || embeddings.token_types > 0;
  if (embeddings.mask_id >= 0 && (has_tables || embeddings.projects_words)) {
    return BadModel(
        "embeddings: mask_id cannot be combined with position embeddings, token types or a "
        "projection of word embeddings");
  }
  const bool projects = embeddings.norm_is_last && embeddings.projected(model.layer.hidden_size);
  if ((!embeddings.projects_words || projects) &&
      (!embeddings.has_neighbours || embeddings.projects_words)) {
    return absl::OkStatus();
  }
  return BadModel(
      "embeddings: has_neighbours requires projects_words, which cannot be combined with a "
      "projection after the norm");
}

absl::Status CheckKind(const LayerShape& layer) {
  const RelativePositions positions = layer.relative_positions.kind;
  const bool is_mixed = layer.attention.kind == AttentionKind::kLinformer;
  if (is_mixed ? layer.attention.linformer.keys < 1 || layer.attention.linformer.positions < 1
               : layer.attention.linformer.keys != 0 || layer.attention.linformer.positions != 0) {
    return BadModel(
        "linformer: expected positive numbers of positions and keys in linformer attention, and 0 "
        "in other attention; got ",
        layer.attention.linformer.positions, " positions and ", layer.attention.linformer.keys,
        " keys in ", Name(layer.attention.kind), " attention");
  }
  const bool has_scores_of_its_own = layer.attention.kind != AttentionKind::kSoftmax;
  const bool adds = positions == RelativePositions::kBuckets ||
                    positions == RelativePositions::kAlibi || layer.attention.window > 0;
  if ((has_scores_of_its_own && positions == RelativePositions::kDisentangled) ||
      (!ScoresPairs(layer.attention.kind) && adds)) {
    return BadModel(Name(layer.attention.kind), " attention cannot be combined with ",
                    layer.attention.window > 0 ? "a window" : Name(positions),
                    layer.attention.window > 0 ? "" : " positions");
  }
  return absl::OkStatus();
}

// Checks that disentangled attention scores queries or keys, and has relative position embeddings.
absl::Status CheckDistances(const LayerShape& layer) {
  const RelativePositionShape& relative = layer.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled) return absl::OkStatus();
  if (!relative.scores_queries && !relative.scores_keys) {
    return BadModel("disentangled attention requires scores_queries or scores_keys");
  }
  const bool has_rows =
      relative.buckets == 0
          ? relative.max_distance > 0
          : relative.buckets > 1 && relative.max_distance > relative.buckets / 2 + 1;
  if (has_rows) return absl::OkStatus();
  return BadModel(
      "relative_positions: expected 0 buckets and a positive max_distance, or at least 2 buckets "
      "and max_distance above buckets / 2 + 1; got ",
      relative.buckets, " buckets and max_distance ", relative.max_distance);
}

// The hidden states of a model without layers are its embeddings. It may have heads.
absl::Status CheckWithoutLayers(const ModelDescription& model) {
  if (model.embeddings && !model.patch_embedding && !model.has_exit_norm) return absl::OkStatus();
  return BadModel(
      "a model without layers requires embeddings and cannot have a patch embedding or a final "
      "norm");
}

absl::Status CheckPositive(const ModelDescription& model) {
  const int64_t layers = model.embeddings && model.layers == 0 ? 1 : model.layers;
  std::pair<const char*, int64_t> sizes[] = {{"layers", layers},
                                             {"hidden_size", model.layer.hidden_size},
                                             {"heads", model.layer.attention.heads},
                                             {"key_width", model.layer.attention.key_width},
                                             {"value_width", model.layer.attention.value_width}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) {
      return BadModel(name, ": expected at least 1; got ", size);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNorms(const LayerShape& layer) {
  if (!layer.norms.has_attention_norm && !layer.norms.are_first()) {
    return BadModel("a layer without an attention norm must be a pre-norm layer");
  }
  const bool bare = layer.norms.placement == NormPlacement::kNone;
  if (bare && layer.feed_forward.width > 0) {
    return BadModel("feed_forward.width: expected 0 (the layer has no residuals); got ",
                    layer.feed_forward.width);
  }
  if (!bare && layer.extras.has_branch_scale && !layer.attention.has_output_projection) {
    return BadModel("a branch scale requires an output projection");
  }
  if (layer.extras.has_second_attention_norm && layer.norms.placement != NormPlacement::kPost) {
    return BadModel("a second attention norm requires a post-norm layer");
  }
  return absl::OkStatus();
}

absl::Status CheckPatchEmbedding(const ModelDescription& model) {
  if (model.patch_embedding && model.patch_embedding->feature_width != 0 &&
      (model.patch_embedding->feature_width < 0 || model.embeddings)) {
    return BadModel("patch_embedding.feature_width: expected ",
                    model.embeddings ? "0 in a model with embeddings" : "at least 0", "; got ",
                    model.patch_embedding->feature_width);
  }
  if (model.patch_embedding &&
      (model.patch_embedding->positions < 0 || model.patch_embedding->registers < 0 ||
       (model.patch_embedding->positions > 0 && model.patch_embedding->features() < 1) ||
       (model.patch_embedding->has_distillation && !model.patch_embedding->has_class))) {
    return BadModel(
        "patch_embedding: expected at least 0 registers, no positions or more than there are class "
        "and distillation tokens, and a class token with a distillation token; got ",
        model.patch_embedding->registers, " registers, ", model.patch_embedding->positions,
        " positions and ", model.patch_embedding->prefix_positions(),
        " class and distillation tokens");
  }
  return absl::OkStatus();
}

absl::Status CheckAttentionWidth(const ModelDescription& model) {
  const LayerShape& layer = model.layer;
  const bool bare = layer.norms.placement == NormPlacement::kNone;
  const bool needs_hidden_size =
      !bare || model.has_exit_norm || !model.dense_heads().empty() || model.vocabulary_head;
  if (layer.attention_width() != layer.inner_width() && needs_hidden_size) {
    return BadModel("expected attention outputs of hidden_size ", layer.hidden_size,
                    " columns; got ", layer.attention_width());
  }
  return absl::OkStatus();
}

// Returns the first error that a check finds in the shape of a layer.
template <class... Checks>
absl::Status CheckEach(const ModelDescription& model, Checks... checks) {
  absl::Status valid;
  const auto check = [&](const LayerShape& layer) {
    ((valid.ok() ? void(valid = checks(layer)) : void()), ...);
  };
  check(model.layer);
  for (const LayerShape& layer : model.layer_shapes) check(layer);
  return valid;
}

}  // namespace

absl::Status CheckDescription(const ModelDescription& model) {
  absl::Status valid = CheckPositive(model);
  valid.Update(CheckLayerShapes(model));
  valid.Update(CheckHeads(model));
  if (valid.ok()) {
    valid = CheckEach(model, CheckDistances, CheckWindow, CheckKind, CheckSharedHeads,
                      CheckBottleneck, CheckMixture, CheckConvolution);
  }
  if (valid.ok()) valid = CheckEmbeddings(model);
  if (!valid.ok()) return valid;
  if (!LoadBytes(model, {}).ok()) {
    return BadModel("a size is negative, or sizes overflow 64 bits");
  }
  if (model.layers == 0) return CheckWithoutLayers(model);
  valid = CheckEach(model, CheckNorms);
  if (valid.ok()) valid = CheckPatchEmbedding(model);
  for (int64_t i = 0; valid.ok() && i < model.weight_sets(); ++i) {
    const LayerShape& layer = model.layer_shape(i);
    if (layer.relative_positions.kind != RelativePositions::kRotary) continue;
    valid = CheckRotary(layer.relative_positions.rotary, layer.attention.key_width);
  }
  if (valid.ok()) valid = CheckAttentionWidth(model);
  if (!valid.ok()) return valid;
  return CheckEach(model, CheckSharing, CheckCrossKvInputs);
}

}  // namespace attendant
