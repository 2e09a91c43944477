#include "engine/checkpoint/families/model_config.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_parts.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

std::vector<std::string> ReadArchitectures(const Json& config) {
  std::vector<std::string> architectures;
  if (!config.is_object() || !config.contains("architectures")) return architectures;
  for (const Json& architecture : config["architectures"]) {
    if (architecture.is_string()) architectures.push_back(architecture.get<std::string>());
  }
  return architectures;
}

bool AnyEndsWith(const std::vector<std::string>& names, std::initializer_list<const char*> ends) {
  return absl::c_any_of(names, [&](const std::string& name) {
    return absl::c_any_of(ends, [&](const char* end) { return absl::EndsWith(name, end); });
  });
}

// Returns the architecture if it has a head other than one over the vocabulary.
std::string FindHead(const std::vector<std::string>& architectures) {
  const auto found = absl::c_find_if(architectures, [](const std::string& name) {
    return absl::c_any_of(
        std::initializer_list<const char*>{"Classification", "ForQuestionAnswering", "ForCTC",
                                           "ForXVector"},
        [&](const char* head) { return absl::StrContains(name, head); });
  });
  return found == architectures.end() ? "" : *found;
}

std::string UnknownFamily(const std::string& model_type,
                          const std::vector<std::string>& architectures) {
  std::string found = model_type;
  if (found.empty() && !architectures.empty()) found = architectures.front();
  const std::string nearest = MisspelledModelType(found);
  if (!nearest.empty()) {
    return absl::StrCat("model_type: expected a known family; got ", Quoted(found),
                        "; the nearest is ", nearest);
  }
  std::vector<std::string> known;
  for (const Family& family : Families()) {
    for (const std::string& type : family.model_types) {
      if (!absl::c_linear_search(known, type)) known.push_back(type);
    }
  }
  return absl::StrCat("model_type: ", found.empty() ? "missing; " : "", "expected one of ",
                      absl::StrJoin(known, ", "), found.empty() ? "" : "; got " + Quoted(found));
}

// Reads the width of a head. The heads must make up the hidden size, unless the family lets the
// config state another width.
int64_t ReadHeadWidth(const Family& family, const LayerShape& layer, ConfigReader& config) {
  if (!family.keys.head_width.empty()) {
    return config.Integer(family.keys.head_width, kHiddenSizeRange);
  }
  const bool divides = family.head_width > 0 || layer.inner_width() % layer.attention.heads == 0;
  const int64_t of_hidden_size = divides ? layer.inner_width() / layer.attention.heads : 1;
  const int64_t width = family.head_width > 0 ? family.head_width : of_hidden_size;
  const Keys head_widths = {"head_dim", "attention_head_size"};
  const int64_t head_dim = config.Integer(head_widths, kHiddenSizeRange, width);
  const bool fits =
      family.has_own_head_width ? divides || config.Has(head_widths) : divides && head_dim == width;
  if (!fits) {
    config.Refuse(family.keys.heads.front(),
                  ": expected heads of one width that make up the hidden size; got ",
                  layer.attention.heads, " heads for ", layer.inner_width(),
                  divides ? absl::StrCat(" with head_dim ", head_dim) : "");
  }
  return head_dim;
}

// Some configs state the activation twice.
void CheckSameActivation(const ConfigKeys& keys, const FeedForwardShape& read,
                         ConfigReader& config) {
  const Activation activation =
      config.Choice<Activation>(keys.same_activation, ActivationNames(), read.activation);
  const bool has_gate = config.Boolean(keys.same_gate, read.has_gate);
  if (activation == read.activation && has_gate == read.has_gate) return;
  config.Refuse(keys.same_activation.front(), " and ", keys.same_gate.front(), ": must agree with ",
                keys.activation.front());
}

// Keeps a block with a gate as large as one without; int(2 * width / 3) of the libraries.
int64_t TwoThirds(int64_t width) { return RoundUp(width * 2 / 3, 8); }

void ReadFeedForward(const Family& family, ConfigReader& config, LayerShape& layer) {
  const ConfigKeys& keys = family.keys;
  if (config.Has(keys.gated_activation)) {
    layer.feed_forward.activation = config.Choice(keys.gated_activation, ActivationNames());
    layer.feed_forward.has_gate = true;
  } else if (family.feed_forward_kinds.empty()) {
    layer.feed_forward.activation = config.Choice(keys.activation, ActivationNames(),
                                                  std::optional<Activation>(family.activation));
  } else {
    const FeedForwardKind kind = config.Choice<FeedForwardKind>(
        keys.activation, family.feed_forward_kinds, family.feed_forward_kinds.front().value);
    layer.feed_forward.activation = kind.activation;
    layer.feed_forward.has_gate = kind.has_gate;
  }
  CheckSameActivation(keys, layer.feed_forward, config);
  if (keys.feed_forward_ratio.empty()) {
    const int64_t width = config.Integer(keys.feed_forward_width, kFeedForwardRange);
    layer.feed_forward.width = family.feed_forward_is_two_thirds ? TwoThirds(width) : width;
    return;
  }
  const float ratio = config.Number(keys.feed_forward_ratio, kHighestFeedForwardRatio);
  layer.feed_forward.width =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(layer.hidden_size) * ratio));
  if (config.Boolean(keys.swiglu, false)) {
    layer.feed_forward.width = TwoThirds(layer.feed_forward.width);
    layer.feed_forward.activation = Activation::kSilu;
    layer.feed_forward.has_gate = true;
  }
}

RelativePositionShape ReadRelativePositions(const Family& family, int64_t head_width,
                                            ConfigReader& config) {
  RelativePositionShape shape = family.relative_positions;
  const ConfigKeys& keys = family.keys;
  if (shape.kind == RelativePositions::kRotary) {
    shape.rotary = ReadRotary(family, /*is_local=*/false, head_width, config);
    return shape;
  }
  if (shape.kind == RelativePositions::kDisentangled) return ReadDisentangled(config);
  if (shape.kind != RelativePositions::kBuckets) return shape;
  shape.buckets = config.Integer(keys.position_buckets, kPositionBucketRange, shape.buckets);
  shape.max_distance =
      config.Integer(keys.position_max_distance, kPositionRange, shape.max_distance);
  // Half of the buckets are for each direction, and half of those hold one distance each.
  if (shape.buckets % 4 != 0 || shape.max_distance <= shape.buckets / 4) {
    config.Refuse(
        "expected relative attention buckets that divide by 4 and a maximum distance above a "
        "quarter of them; got ",
        shape.buckets, " buckets up to ", shape.max_distance);
  }
  return shape;
}

NormPlacement ReadNormPlacement(const Family& family, ConfigReader& config) {
  if (family.keys.norm_first.empty()) return family.norm_placement;
  return config.Boolean(family.keys.norm_first, false) ? NormPlacement::kPre : NormPlacement::kPost;
}

constexpr Named<NormKind> kNormKinds[] = {{"layer_norm", NormKind::kLayer},
                                          {"no_norm", NormKind::kAffine}};

LayerShape ReadLayer(const Family& family, ConfigReader& config) {
  const ConfigKeys& keys = family.keys;
  LayerShape layer;
  layer.hidden_size = config.Integer(keys.hidden_size, kHiddenSizeRange);
  if (!keys.bottleneck.empty()) ReadBottleneck(config, layer);
  const int64_t most_heads =
      keys.head_width.empty() ? layer.inner_width() : kHiddenSizeRange.highest;
  layer.attention.heads = config.Integer(keys.heads, {1, most_heads});
  layer.attention.key_width = layer.attention.value_width = ReadHeadWidth(family, layer, config);
  const int64_t width = keys.score_width.empty() ? layer.attention.key_width : family.head_width;
  const float score_width =
      config.Number(keys.score_width, kHighestScoreWidth, static_cast<float>(width));
  layer.attention.score_scale = family.scales_scores ? 1 / std::sqrt(score_width) : 1.0f;
  ReadFeedForward(family, config, layer);
  layer.norms.placement = ReadNormPlacement(family, config);
  layer.norms.kind = keys.norm_kind.empty()
                         ? family.norm_kind
                         : config.Choice<NormKind>(keys.norm_kind, kNormKinds, family.norm_kind);
  layer.norms.epsilon = config.Number(keys.norm_epsilon, kHighestNormEpsilon, family.norm_epsilon);
  layer.norms.last_epsilon = family.own_norm_epsilon;
  layer.extras.has_branch_scale = family.has_branch_scale;
  layer.relative_positions = ReadRelativePositions(family, layer.attention.key_width, config);
  // Each score is the sum of so many products.
  const int terms =
      1 + layer.relative_positions.scores_queries + layer.relative_positions.scores_keys;
  layer.attention.score_scale /= std::sqrt(static_cast<float>(terms));
  if (!keys.attention_type.empty()) ReadBlockPattern(config, layer);
  if (!keys.convolution.empty()) {
    layer.extras.convolution = ReadConvolution(keys.convolution, layer, config);
  }
  // A window of w tokens reaches w / 2 tokens to either side, and at least one.
  if (!keys.window.empty())
    layer.attention.window = config.Integer(keys.window, {2, kPositionRange.highest}) / 2;
  return layer;
}

// Reads what differs between layers.
void ReadLayerShapes(const Family& family, ConfigReader& config, ModelDescription& model) {
  const ConfigKeys& keys = family.keys;
  if (keys.window.empty() && model.layer.extras.convolution.taps == 0) return;
  model.SplitShapes();
  for (size_t i = 1; i < model.layer_shapes.size(); ++i) {
    model.layer_shapes[i].extras.convolution = {};
  }
  if (keys.window.empty()) return;
  for (size_t i = 0; i < model.layer_shapes.size(); ++i) {
    model.layer_shapes[i].norms.has_attention_norm = i > 0 || family.has_first_attention_norm;
  }
  SetWindowed(ReadWindowed(keys, model.layers, config), family, config, model);
}

// Maps layer i to the weights of group floor(i groups / layers).
std::vector<int64_t> ReadLayerMap(const Family& family, int64_t layers, ConfigReader& config) {
  if (family.keys.layer_groups.empty()) return {};
  const int64_t groups = config.Integer(family.keys.layer_groups, {1, layers}, 1);
  std::vector<int64_t> map(layers);
  for (int64_t i = 0; i < layers; ++i) map[i] = i * groups / layers;
  return map;
}

// Refuses what would make the same tensors compute something else.
void RefuseVariants(const Family& family, ConfigReader& config) {
  Keys refused = {"add_cross_attention"};
  if (!family.is_causal) refused.push_back("is_decoder");
  for (const std::string& key : refused) {
    if (config.Boolean({key}, false)) {
      config.Refuse(key, ": expected false (for an encoder); got true");
    }
  }
  const std::string positions =
      config.Text({"position_embedding_type"}, family.position_embedding_type);
  const Keys& types = family.position_embedding_types;
  if (!positions.empty() && !absl::c_linear_search(types, positions)) {
    config.Refuse("position_embedding_type: expected '", absl::StrJoin(types, "' or '"), "'; got ",
                  Quoted(positions));
  }
  for (const FixedKey& fixed : family.fixed_keys) {
    if (!config.Has({fixed.key}) || config.json()[fixed.key] == fixed.value) continue;
    const std::string why = fixed.reason == nullptr ? "" : absl::StrCat(" (", fixed.reason, ")");
    config.Refuse(fixed.key, ": expected ", Describe(fixed.value), why, "; got ",
                  Describe(config.json()[fixed.key]));
  }
  if (config.Has({"quantization_config"})) {
    config.Refuse("quantization_config: not supported: quantized weights are not read");
  }
}

// Reads the image size and the patch size of a family that takes pixels.
std::optional<PatchEmbeddingShape> ReadPatches(const Family& family, ConfigReader& config) {
  if (family.keys.patch_size.empty()) return std::nullopt;
  constexpr int64_t kLargestImage = 8192, kLargestPatch = 256, kChannels = 3;
  PatchEmbeddingShape shape;
  shape.image_size = config.Integer({"image_size"}, {1, kLargestImage});
  shape.patch_size = config.Integer(family.keys.patch_size, {1, kLargestPatch});
  shape.feature_width = kChannels * shape.patch_size * shape.patch_size;
  config.Integer({"num_channels"}, {kChannels, kChannels}, kChannels);
  if (shape.patch_size > shape.image_size) {
    config.Refuse("patch_size: expected at most image_size ", shape.image_size, "; got ",
                  shape.patch_size);
  }
  return shape;
}

// Configs of CLIP that were written before its code knew the id say 2: then the end was found as
// the largest id.
int64_t ReadEnd(const Keys& keys, ConfigReader& config) {
  constexpr int64_t kUnknown = 2, kEndOfClip = 49407;
  if (keys.empty()) return PoolingDescription::kNoEnd;
  const int64_t end = config.Integer(keys, {0, kVocabularyRange.highest}, kEndOfClip);
  return end == kUnknown ? PoolingDescription::kLargestId : end;
}

PoolingDescription ReadPooler(const Family& family, const LayerShape& layer, ConfigReader& config) {
  PoolingDescription pooler = {
      .modes = {family.pooler_mode},
      .dense_width = config.Integer(family.keys.pooler_width, kHiddenSizeRange, layer.hidden_size),
      .dense_activation = config.Choice<Activation>(family.keys.pooler_activation,
                                                    ActivationNames(), family.pooler_activation)};
  if (family.pooler_has_block) {
    pooler.block = {layer.feed_forward.width, layer.feed_forward.activation};
  }
  pooler.end_id = ReadEnd(family.keys.pooler_end, config);
  return pooler;
}

constexpr Named<PoolingMode> kClassifierModes[] = {{"cls", PoolingMode::kFirstToken},
                                                   {"mean", PoolingMode::kMean}};
constexpr Named<PoolingMode> kLateClassifierModes[] = {{"bos", PoolingMode::kFirstToken},
                                                       {"mean", PoolingMode::kMean},
                                                       {"late", PoolingMode::kLateMean}};

// Returns the pooling of a head that scores classes of whole sequences, or nothing for other
// architectures: they have heads of the same names for each token, or for pairs of sequences. Heads
// that look at all layers are not supported either.
std::vector<PoolingMode> ReadClassifierModes(const Family& family,
                                             const std::vector<std::string>& architectures,
                                             ConfigReader& config) {
  if (!AnyEndsWith(architectures, {"ForSequenceClassification", "ForImageClassification",
                                   "ForAudioClassification"})) {
    return {};
  }
  if (config.Boolean({"use_weighted_layer_sum"}, false)) return {};
  if (family.keys.classifier_pooling.empty()) return family.classifier_modes;
  std::optional<PoolingMode> fallback;
  if (!family.classifier_modes.empty()) fallback = family.classifier_modes.front();
  const absl::Span<const Named<PoolingMode>> modes = fallback == PoolingMode::kLateMean
                                                         ? absl::MakeConstSpan(kLateClassifierModes)
                                                         : absl::MakeConstSpan(kClassifierModes);
  return {config.Choice<PoolingMode>(family.keys.classifier_pooling, modes, fallback)};
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& folder, Tower tower) {
  const std::string path = absl::StrCat(folder, "/config.json");
  ASSIGN_OR_RETURN(const Json file, ReadJsonFile(path));
  return ReadModelConfig(file, path, tower);
}

absl::StatusOr<ModelConfig> ReadModelConfig(const Json& file, const std::string& path,
                                            Tower tower) {
  Problems problems(path);
  if (const char* reason = ReasonToRefuse(ConfigReader(file, problems).Text({"model_type"}, ""),
                                          ReadArchitectures(file))) {
    problems.Add("model_type: not supported: ", reason);
    return problems.ToStatus();
  }
  const Json json = ConfigOfTower(file, tower, problems);
  RETURN_IF_ERROR(problems.ToStatus());
  ConfigReader config(json, problems);
  const std::string model_type = config.Text({"model_type"}, "");
  const std::vector<std::string> architectures = ReadArchitectures(json);
  const Family* family =
      FindFamily(model_type, architectures, config.Text({"position_embedding_type"}, ""));
  if (family == nullptr) {
    problems.Add(UnknownFamily(model_type, architectures));
    return problems.ToStatus();
  }
  ModelConfig read = {.family = family,
                      .classifier_modes = ReadClassifierModes(*family, architectures, config),
                      .has_token_head = AnyEndsWith(
                          architectures, {"ForTokenClassification", "ForQuestionAnswering"}),
                      .has_vocabulary_head = AnyEndsWith(architectures, {"ForMaskedLM"}),
                      .head_architecture = FindHead(architectures),
                      .is_language_model = !architectures.empty() &&
                                           absl::EndsWith(architectures[0], "ForCausalLM")};
  if (read.classifier_modes == std::vector{PoolingMode::kLastToken}) {
    // The library looks for the last token that is not padding by its id.
    read.classifier_padding_id =
        config.IntegerOrNone({"pad_token_id"}, {0, kVocabularyRange.highest});
  }
  if (const Keys& keys = family->keys.classifier_activation; !keys.empty()) {
    read.classifier_activation =
        config.Choice<Activation>(keys, ActivationNames(), family->classifier_activation);
  }
  ModelDescription& description = read.description;
  description.family = family->name;
  description.layers = config.Integer(family->keys.layers, kLayerRange);
  description.layer = ReadLayer(*family, config);
  description.layer_map = ReadLayerMap(*family, description.layers, config);
  ReadCausalAttention(*family, config, description);
  ReadLayerShapes(*family, config, description);
  ReadMixture(family->keys, config, description);
  read.pooler = ReadPooler(*family, description.layer, config);
  if (!family->keys.vocabulary.empty()) {
    description.embeddings = ReadEmbeddings(*family, description.layer, config);
  }
  description.patch_embedding = ReadPatches(*family, config);
  // Every stack with norms before its branches has one more norm after the last layer.
  description.has_exit_norm = description.layer.norms.are_first();
  RefuseVariants(*family, config);
  JudgeUnreadKeys(*family, config, read.warnings);
  RETURN_IF_ERROR(problems.ToStatus());
  return read;
}

}  // namespace attendant
