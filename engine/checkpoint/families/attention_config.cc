#include <algorithm>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "engine/checkpoint/families/config_parts.h"

namespace attendant {
namespace {

constexpr int64_t kHighestRandomBlocks = 1024;
constexpr int64_t kHighestBlocks = 1024;

// Sets the maximum distance and the number of buckets. Without buckets each distance counts by
// itself.
void ReadSizes(ConfigReader& config, RelativePositionShape& shape) {
  shape.max_distance = config.IntegerOrNone({"max_relative_positions"}, kPositionRange);
  if (shape.max_distance < 1) {
    shape.max_distance = config.Integer({"max_position_embeddings"}, kPositionRange);
  }
  const int64_t buckets =
      config.IntegerOrNone({"position_buckets"}, {2, kPositionBucketRange.highest});
  if (buckets < 1) return;
  shape.buckets = buckets;
  if (shape.max_distance > buckets / 2 + 1) return;
  config.Refuse("max_relative_positions: expected more than ", buckets / 2 + 1,
                " (position_buckets / 2 + 1); got ", shape.max_distance);
}

void ReadKeyValueHeads(const Keys& keys, ConfigReader& config, AttentionBlockShape& attention) {
  const int64_t heads = attention.heads, shared = config.Integer(keys, {1, heads}, heads);
  if (heads % shared != 0) {
    config.Refuse(keys.front(), ": expected a divisor of the ", heads, " query heads; got ",
                  shared);
  } else if (shared < heads) {
    attention.key_value_heads = shared;
  }
}

// A causal window of w tokens, with the query's own, is one that reaches w - 1 tokens back;
// without the mask the library lets it reach w tokens to either side, or half as many.
void SetCausal(bool causal, const Family& family, AttentionBlockShape& attention) {
  if (attention.causal == causal) return;
  attention.causal = causal;
  int64_t& window = attention.window;
  if (window == 0) return;
  if (family.halves_window) {
    window = causal ? 2 * window - 1 : (window + 1) / 2;
  } else {
    window += causal ? -1 : 1;
  }
}

void ReadWindow(const Family& family, ConfigReader& config, ModelDescription& model) {
  const ConfigKeys& keys = family.keys;
  const bool in_use =
      keys.has_causal_window.empty() || config.Boolean(keys.has_causal_window, false);
  const bool is_none =
      config.json().contains(keys.causal_window.front()) && !config.Has(keys.causal_window);
  const std::vector<bool> windowed = ReadWindowed(keys, model.layers, config);
  const bool has_any = absl::c_linear_search(windowed, true);
  if (!in_use || is_none) {
    // A list of windowed layers needs the size of their window. Without a list, no layer has one.
    if (has_any && config.Has(keys.layer_kinds)) {
      config.Refuse(keys.causal_window.front(), ": missing; ", keys.layer_kinds.front(),
                    " lists layers with a window");
    }
    return;
  }
  const int64_t width =
      config.Integer(keys.causal_window, {2, kPositionRange.highest}, family.causal_window);
  if (!has_any) return;
  model.layer.attention.window = width - 1;
  SetWindowed(windowed, family, config, model);
}

}  // namespace

RelativePositionShape ReadDisentangled(ConfigReader& config) {
  RelativePositionShape shape;
  for (const std::string& word : config.Words({"pos_att_type"})) {
    if (word == "c2p") {
      shape.scores_queries = true;
    } else if (word == "p2c") {
      shape.scores_keys = true;
    } else {
      config.Refuse("pos_att_type: expected 'c2p', 'p2c' or both; got ", Quoted(word));
    }
  }
  shape.shares_projections = config.Boolean({"share_att_key"}, false);
  for (const std::string& word : config.Words({"norm_rel_ebd"})) {
    if (word == "layer_norm") {
      shape.has_norm = true;
    } else if (word != "none") {
      config.Refuse("norm_rel_ebd: expected 'layer_norm' or 'none'; got ", Quoted(word));
    }
  }
  const bool is_relative = config.Boolean({"relative_attention"}, false);
  if (!is_relative || (!shape.scores_queries && !shape.scores_keys)) return shape;
  shape.kind = RelativePositions::kDisentangled;
  ReadSizes(config, shape);
  return shape;
}

void ReadBottleneck(ConfigReader& config, LayerShape& layer) {
  layer.feed_forward.blocks = config.Integer({"num_feedforward_networks"}, {1, kHighestBlocks}, 4);
  if (!config.Boolean({"use_bottleneck"}, true)) return;
  layer.extras.bottleneck.width = config.Integer({"intra_bottleneck_size"}, kHiddenSizeRange);
  if (config.Boolean({"use_bottleneck_attention"}, false)) return;
  layer.extras.bottleneck.values_from_outside = true;
  if (config.Boolean({"key_query_shared_bottleneck"}, true)) return;
  config.Refuse(
      "key_query_shared_bottleneck: expected true without use_bottleneck_attention; got false");
}

// Neighbouring blocks see each other; the first and the last block see all and are seen by all. In
// short sequences all blocks see each other. Outside training the library always draws block 0 as a
// random block.
void ReadBlockPattern(ConfigReader& config, LayerShape& layer) {
  constexpr Named<bool> kTypes[] = {{"block_sparse", true}, {"original_full", false}};
  if (!config.Choice<bool>({"attention_type"}, kTypes, true)) return;
  const int64_t block = config.Integer({"block_size"}, {1, kPositionRange.highest}, 64);
  const int64_t drawn = config.Integer({"num_random_blocks"}, {0, kHighestRandomBlocks}, 3);
  layer.attention.window = 1;
  layer.attention.pattern = {.block = block,
                             .first_global = 1,
                             .last_global = 1,
                             .first_repeats = drawn,
                             .full_up_to = (5 + 2 * drawn) * block};
}

ConvolutionShape ReadConvolution(const Keys& taps, const LayerShape& layer, ConfigReader& config) {
  constexpr int64_t kMostTaps = 1023;
  ConvolutionShape shape;
  shape.taps = std::max<int64_t>(0, config.IntegerOrNone(taps, {0, kMostTaps}));
  if (shape.taps == 0) return shape;
  shape.groups = config.Integer({"conv_groups"}, {1, layer.hidden_size}, 1);
  shape.activation =
      config.Choice({"conv_act"}, ActivationNames(), std::optional<Activation>(Activation::kTanh));
  if (shape.taps % 2 == 0 || layer.hidden_size % shape.groups != 0) {
    config.Refuse(
        taps.front(),
        ": expected a convolution with an odd kernel size in groups that divide the hidden size ",
        layer.hidden_size, "; got ", shape.taps, " in ", shape.groups, " groups");
    return {};
  }
  return shape;
}

void ReadMixture(const ConfigKeys& keys, ConfigReader& config, ModelDescription& model) {
  if (keys.experts.empty()) return;
  const int64_t experts = config.Integer(keys.experts, {0, kMostExperts}, 0);
  if (experts == 0) return;
  if (model.layer.feed_forward.has_gate) {
    config.Refuse(keys.experts.front(),
                  ": expected 0 (experts with a gate are not supported); got ", experts);
  }
  const int64_t every = config.Integer(keys.experts_every, {2, kLayerRange.highest});
  const MixtureShape mixture = {experts, config.Integer(keys.experts_per_token, {1, experts})};
  if (model.layers < 2) return;
  model.SplitShapes();
  model.layer.feed_forward.mixture = mixture;
  for (size_t i = 1; i < model.layer_shapes.size(); i += every) {
    model.layer_shapes[i].feed_forward.mixture = mixture;
  }
}

std::vector<bool> ReadWindowed(const ConfigKeys& keys, int64_t layers, ConfigReader& config) {
  constexpr int64_t kFirstWindowed = 28, kPeriod = 6;
  const bool has_list = config.Has(keys.layer_kinds);
  const auto read = [&](const Keys& key, IntegerRange range, std::optional<int64_t> otherwise) {
    return key.empty() ? 0 : config.Integer(key, range, otherwise);
  };
  const int64_t every = has_list ? 0 : read(keys.global_every, kLayerRange, std::nullopt);
  const int64_t period = read(keys.last_of_period, kLayerRange, kPeriod);
  const int64_t first = read(keys.first_windowed, {0, kLayerRange.highest}, kFirstWindowed);
  std::vector<bool> windowed(layers);
  for (int64_t i = 0; i < layers; ++i) {
    windowed[i] =
        (every == 0 || i % every != 0) && (period == 0 || (i + 1) % period != 0) && i >= first;
  }
  if (!has_list) return windowed;
  const std::string& key = keys.layer_kinds.front();
  const Json& list = config.json()[key];
  if (!list.is_array() || list.size() != windowed.size()) {
    config.Refuse(key, ": expected a list of ", layers, " layers; got ", Describe(list));
    return windowed;
  }
  for (size_t i = 0; i < windowed.size(); ++i) {
    windowed[i] = list[i] == kLocalLayer;
    if (windowed[i] || list[i] == kGlobalLayer) continue;
    config.Refuse(key, "[", i, "]: expected '", kGlobalLayer, "' or '", kLocalLayer, "'; got ",
                  Describe(list[i]));
  }
  return windowed;
}

void SetWindowed(const std::vector<bool>& windowed, const Family& family, ConfigReader& config,
                 ModelDescription& model) {
  const RotaryShape local =
      ReadRotary(family, /*is_local=*/true, model.layer.attention.key_width, config);
  if (!absl::c_linear_search(windowed, false)) {
    return model.ChangeShapes([&](LayerShape& layer) { layer.relative_positions.rotary = local; });
  }
  model.SplitShapes();
  for (size_t i = 0; i < model.layer_shapes.size(); ++i) {
    LayerShape& layer = model.layer_shapes[i];
    if (windowed[i]) {
      layer.relative_positions.rotary = local;
    } else {
      layer.attention.window = 0;
    }
  }
}

void ReadCausalAttention(const Family& family, ConfigReader& config, ModelDescription& model) {
  AttentionBlockShape& attention = model.layer.attention;
  attention.query_key_norms = family.query_key_norms;
  if (!family.keys.key_value_heads.empty()) {
    ReadKeyValueHeads(family.keys.key_value_heads, config, attention);
  }
  if (!family.is_causal) return;
  attention.causal = true;
  if (!family.keys.causal_window.empty()) ReadWindow(family, config, model);
  // Three ways to say that a model was trained on without the mask.
  const bool causal = config.Boolean({"is_causal"}, true) && config.Boolean({"is_decoder"}, true) &&
                      !config.Boolean({"use_bidirectional_attention"}, false);
  model.ChangeShapes([&](LayerShape& layer) { SetCausal(causal, family, layer.attention); });
}

absl::Status ChooseCausality(const std::string& folder, CausalChoice choice, const Family& family,
                             ModelDescription& model) {
  if (choice == CausalChoice::kAsFiles) return absl::OkStatus();
  if (!family.is_causal) {
    return InvalidArgument(folder, ": causal: not supported: models of the family ", family.name,
                           " are never causal; leave the key out");
  }
  model.ChangeShapes([&](LayerShape& layer) {
    SetCausal(choice == CausalChoice::kCausal, family, layer.attention);
  });
  return absl::OkStatus();
}

}  // namespace attendant
