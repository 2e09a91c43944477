#include <algorithm>
#include <optional>
#include <string>

#include "engine/checkpoint/families/bounds.h"
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

float ScoreTerms(const RelativePositionShape& shape) {
  return 1.0f + (shape.scores_queries ? 1.0f : 0.0f) + (shape.scores_keys ? 1.0f : 0.0f);
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

std::vector<bool> ReadWindowedLayers(const Keys& kinds, std::vector<bool> otherwise,
                                     const ConfigReader& config) {
  if (!config.Has(kinds)) return otherwise;
  const std::string& key = kinds.front();
  const Json& list = config.json()[key];
  if (!list.is_array() || list.size() != otherwise.size()) {
    config.Refuse(key, ": expected a list of ", otherwise.size(), " layers; got ", Describe(list));
    return otherwise;
  }
  for (size_t i = 0; i < otherwise.size(); ++i) {
    otherwise[i] = list[i] == kLocalLayer;
    if (otherwise[i] || list[i] == kGlobalLayer) continue;
    config.Refuse(key, "[", i, "]: expected '", kGlobalLayer, "' or '", kLocalLayer, "'; got ",
                  Describe(list[i]));
  }
  return otherwise;
}

}  // namespace attendant
