#include "engine/model/check_description.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/model/check_heads.h"
#include "engine/model/check_layer_shapes.h"
#include "engine/model/load_plan.h"

namespace attendant {
namespace {

template <typename... Parts>
absl::Status Refusal(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("model description: ", parts...));
}

// Queries, keys and values that share columns have one width, and nothing that is not in all.
absl::Status CheckSharing(const LayerShape& layer) {
  if (layer.attention.values_are_keys && layer.attention.value_width != layer.attention.key_width) {
    return Refusal("expected values as wide as the keys that they are, ", layer.attention.key_width,
                   ", got ", layer.attention.value_width);
  }
  if (!layer.attention.has_input_projection &&
      (!layer.attention.keys_are_queries || !layer.attention.values_are_keys ||
       layer.context_width() != layer.hidden_size)) {
    return Refusal("expected queries, keys and values that are the input, as wide as hidden_size ",
                   layer.hidden_size, ", in a layer without input projection, got ",
                   layer.context_width());
  }
  const bool shares = layer.attention.keys_are_queries || layer.attention.values_are_keys;
  const RelativePositions kind = layer.relative_positions.kind;
  if (shares && (kind == RelativePositions::kRotary || kind == RelativePositions::kDisentangled ||
                 layer.attention.query_key_norms != QueryKeyNorms::kNone)) {
    return Refusal(
        "expected projections of their own for queries, keys and values beside rotary or "
        "disentangled positions or norms of queries and keys");
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
    return Refusal("expected heads of keys and values, fewer than the ", attention.heads,
                   " query heads and a divisor of their number, in softmax attention with "
                   "projections of their own and without disentangled positions, got ",
                   shared);
  }
  if (attention.causal && (attention.kind != AttentionKind::kSoftmax || is_disentangled ||
                           attention.pattern != AttentionPattern())) {
    return Refusal(
        "expected causal softmax attention without disentangled positions and without blocks of a "
        "pattern, got it in ",
        Name(attention.kind), " attention with ", Name(layer.relative_positions.kind),
        " positions");
  }
  return absl::OkStatus();
}

absl::Status CheckCrossKvInputs(const LayerShape& layer) {
  if (!layer.needs_cross_kv() ||
      (layer.takes_cross_kv() && layer.attention.has_input_projection &&
       !layer.attention.keys_are_queries && !layer.attention.values_are_keys)) {
    return absl::OkStatus();
  }
  return Refusal(
      "expected projections of their own for queries, keys and values, no relative positions, no "
      "causal attention and no window where they are made of rows of other widths, got ",
      layer.hidden_size, ", ", layer.key_inputs(), " and ", layer.value_inputs(), " columns");
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
    return Refusal("expected different pairs of blocks and different global blocks, from 0 to ",
                   kMostPositions / pattern.block, ", got them from ", lowest, " to ", highest);
  }
  const CheckedSize scores =
      CheckedSize(pattern.block) * pattern.block * static_cast<int64_t>(pairs.size());
  if ((scores * (CheckedSize(2) * layer.attention.heads * layer.attention.key_width)).ok())
    return absl::OkStatus();
  return Refusal("expected fewer blocks, got an overflow");
}

absl::Status CheckWindow(const LayerShape& layer) {
  if (layer.attention.window < 0) {
    return Refusal("expected a window of 0 or more, got ", layer.attention.window);
  }
  const AttentionPattern& pattern = layer.attention.pattern;
  const int64_t lowest = std::min(
      {pattern.first_global, pattern.last_global, pattern.first_repeats, pattern.full_up_to});
  if (pattern.block < 1 || lowest < 0 ||
      (layer.attention.window == 0 && pattern != AttentionPattern())) {
    return Refusal(
        "expected blocks of 1 or more positions, no negative number of them, and a window beside");
  }
  const CheckedSize reach =
      CheckedSize(pattern.block) *
      (CheckedSize(2) * layer.attention.window + CheckedSize(1) + pattern.first_global +
       pattern.last_global + static_cast<int64_t>(pattern.listed.globals().size()));
  if (reach.ok() &&
      (reach * (CheckedSize(2) * layer.attention.heads * layer.attention.key_width)).ok()) {
    return CheckListedBlocks(layer);
  }
  return Refusal("expected fewer blocks, got an overflow");
}

// What is between the two linear layers of a bottleneck, and what it must not be.
absl::Status CheckBottleneck(const LayerShape& layer) {
  const bool fits = layer.norms.placement == NormPlacement::kPost &&
                    layer.norms.has_attention_norm && layer.attention.has_output_projection &&
                    layer.attention.output_width == 0 && layer.attention.has_input_projection &&
                    layer.feed_forward.width > 0 && !layer.extras.has_branch_scale &&
                    layer.attention.key_input_width == 0 &&
                    layer.attention.value_input_width == 0 &&
                    layer.relative_positions.kind != RelativePositions::kDisentangled;
  if (layer.extras.bottleneck.width < 0 || (layer.extras.bottleneck.width > 0 && !fits)) {
    return Refusal(
        "expected a bottleneck around attention with projections, norms behind the branches and "
        "feed-forward blocks, without scales of branches or disentangled positions");
  }
  if (layer.extras.bottleneck.values_from_outside &&
      (layer.extras.bottleneck.width == 0 || layer.attention.values_are_keys)) {
    return Refusal(
        "expected a bottleneck and a projection of their own for values from outside of it");
  }
  constexpr int64_t kMostBlocks = 1024;
  if (layer.feed_forward.blocks < 1 || layer.feed_forward.blocks > kMostBlocks ||
      (layer.feed_forward.blocks > 1 &&
       (layer.feed_forward.width == 0 || layer.feed_forward.has_gate ||
        layer.extras.has_branch_scale))) {
    return Refusal("expected one feed-forward block, or up to ", kMostBlocks,
                   " without gate or scale, got ", layer.feed_forward.blocks);
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
  return Refusal("expected up to ", kMostExperts,
                 " experts, at least one and at most all of them for a token, in a layer with one "
                 "feed-forward block, without branch scale or bottleneck, got ",
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
  return Refusal("expected a convolution of an odd number of places up to ", kMostTaps,
                 ", in groups that divide hidden_size ", layer.hidden_size,
                 ", beside a layer with norms behind its branches and no bottleneck, got ", taps,
                 " places in ", groups, " groups");
}

absl::Status CheckEmbeddings(const ModelDescription& model) {
  if (!model.embeddings) return absl::OkStatus();
  const EmbeddingShape& embeddings = *model.embeddings;
  if (!IsFloat(embeddings.table_type) || ByteWidth(embeddings.table_type) > 4) {
    return Refusal("expected tables of embeddings in float32, float16 or bfloat16, got ",
                   Name(embeddings.table_type));
  }
  const bool has_tables = embeddings.positions > 0 || embeddings.token_types > 0;
  if ((embeddings.task_types > 0 && embeddings.token_types == 0) ||
      (embeddings.mask_id >= 0 && (has_tables || embeddings.projects_words))) {
    return Refusal(
        "expected token types with task types, and words alone where masks are left out");
  }
  const bool projects = embeddings.norm_is_last && embeddings.projected(model.layer.hidden_size);
  if ((!embeddings.projects_words || projects) &&
      (!embeddings.has_neighbours || embeddings.projects_words)) {
    return absl::OkStatus();
  }
  return Refusal(
      "expected words with their neighbours to be projected alone, before the norm of the "
      "embeddings");
}

absl::Status CheckKind(const LayerShape& layer) {
  const RelativePositions positions = layer.relative_positions.kind;
  const bool is_mixed = layer.attention.kind == AttentionKind::kLinformer;
  if (is_mixed ? layer.attention.linformer.keys < 1 || layer.attention.linformer.positions < 1
               : layer.attention.linformer.keys != 0 || layer.attention.linformer.positions != 0) {
    return Refusal(
        "expected keys to be mixed from places into rows in linformer attention alone, got ",
        layer.attention.linformer.positions, " into ", layer.attention.linformer.keys, " in ",
        Name(layer.attention.kind));
  }
  const bool has_scores_of_its_own = layer.attention.kind != AttentionKind::kSoftmax;
  const bool adds = positions == RelativePositions::kBuckets ||
                    positions == RelativePositions::kAlibi || layer.attention.window > 0;
  if ((has_scores_of_its_own && positions == RelativePositions::kDisentangled) ||
      (!ScoresPairs(layer.attention.kind) && adds)) {
    return Refusal("expected ", Name(layer.attention.kind), " attention without ",
                   layer.attention.window > 0 ? "a window" : Name(positions),
                   layer.attention.window > 0 ? "" : " positions");
  }
  return absl::OkStatus();
}

// Distances have keys or queries of their own, and rows to find them in.
absl::Status CheckDistances(const LayerShape& layer) {
  const RelativePositionShape& relative = layer.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled) return absl::OkStatus();
  if (!relative.scores_queries && !relative.scores_keys) {
    return Refusal("expected disentangled attention to score queries, keys or both, got neither");
  }
  const bool has_rows =
      relative.buckets == 0
          ? relative.max_distance > 0
          : relative.buckets > 1 && relative.max_distance > relative.buckets / 2 + 1;
  if (has_rows) return absl::OkStatus();
  return Refusal(
      "expected no buckets of distances, or two or more and a maximum distance above half of them "
      "and one, got ",
      relative.buckets, " up to ", relative.max_distance);
}

// A model without layers has embeddings, which are its hidden states, and heads.
absl::Status CheckWithoutLayers(const ModelDescription& model) {
  if (model.embeddings && !model.patch_embedding && !model.has_exit_norm) return absl::OkStatus();
  return Refusal("expected embeddings alone in a model without layers");
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
      return Refusal("expected ", name, " of at least 1, got ", size);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNorms(const LayerShape& layer) {
  if (!layer.norms.has_attention_norm && !layer.norms.are_first()) {
    return Refusal("expected norms before the branches in a layer without attention norm");
  }
  const bool bare = layer.norms.placement == NormPlacement::kNone;
  if (bare && layer.feed_forward.width > 0) {
    return Refusal("expected no feed-forward block in a layer without residuals, got one of width ",
                   layer.feed_forward.width);
  }
  if (!bare && layer.extras.has_branch_scale && !layer.attention.has_output_projection) {
    return Refusal("expected an output projection in a layer with a branch scale, got none");
  }
  if (layer.extras.has_second_attention_norm && layer.norms.placement != NormPlacement::kPost) {
    return Refusal("expected norms behind the branches in a layer with a second attention norm");
  }
  return absl::OkStatus();
}

absl::Status CheckPatchEmbedding(const ModelDescription& model) {
  if (model.patch_embedding && model.patch_embedding->feature_width != 0 &&
      (model.patch_embedding->feature_width < 0 || model.embeddings)) {
    return Refusal(
        "expected a linear layer for features of a positive width in a model without embeddings");
  }
  if (model.patch_embedding &&
      (model.patch_embedding->positions < 0 || model.patch_embedding->registers < 0 ||
       (model.patch_embedding->positions > 0 && model.patch_embedding->features() < 1) ||
       (model.patch_embedding->has_distillation && !model.patch_embedding->has_class))) {
    return Refusal(
        "expected a front with positions for its tokens and for rows behind them, or none, and no "
        "distillation token without a class token");
  }
  return absl::OkStatus();
}

absl::Status CheckAttentionWidth(const ModelDescription& model) {
  const LayerShape& layer = model.layer;
  const bool bare = layer.norms.placement == NormPlacement::kNone;
  const bool needs_hidden_size =
      !bare || model.has_exit_norm || !model.dense_heads().empty() || model.vocabulary_head;
  if (layer.attention_width() != layer.inner_width() && needs_hidden_size) {
    return Refusal("expected attention as wide as hidden_size ", layer.hidden_size, ", got ",
                   layer.attention_width());
  }
  return absl::OkStatus();
}

// The first refusal of a layer's shape.
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
    return Refusal("sizes that are negative or overflow");
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
