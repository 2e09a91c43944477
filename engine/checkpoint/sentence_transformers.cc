#include "engine/checkpoint/sentence_transformers.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/families/bounds.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/derived_weights.h"
#include "engine/checkpoint/families/model_config.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

struct ModeNames {
  const char* flag;  // its boolean key, before version 5
  const char* name;  // its name in pooling_mode, since version 5
  PoolingMode mode;
};

// The order is the one in which the vectors are concatenated if several flags are set.
constexpr ModeNames kPoolingModes[] = {
    {"pooling_mode_cls_token", "cls", PoolingMode::kFirstToken},
    {"pooling_mode_max_tokens", "max", PoolingMode::kMax},
    {"pooling_mode_mean_tokens", "mean", PoolingMode::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", PoolingMode::kMeanSqrtLen},
    {"pooling_mode_weightedmean_tokens", "weightedmean", PoolingMode::kPositionWeightedMean},
    {"pooling_mode_lasttoken", "lasttoken", PoolingMode::kLastToken},
};
constexpr size_t kMostModes = std::size(kPoolingModes);

constexpr Named<Activation> kDenseActivations[] = {
    {"torch.nn.modules.linear.Identity", Activation::kIdentity},
    {"torch.nn.modules.activation.Tanh", Activation::kTanh},
    {"torch.nn.modules.activation.ReLU", Activation::kRelu},
    {"torch.nn.modules.activation.GELU", Activation::kGelu},
    {"torch.nn.modules.activation.SiLU", Activation::kSilu},
    {"torch.nn.modules.activation.Sigmoid", Activation::kSigmoid},
};

std::vector<PoolingMode> ReadModeFlags(ConfigReader& config) {
  std::vector<PoolingMode> modes;
  for (const ModeNames& mode : kPoolingModes) {
    if (config.Boolean({mode.flag}, false)) modes.push_back(mode.mode);
  }
  if (modes.empty()) modes.push_back(PoolingMode::kMean);  // the library's default
  return modes;
}

// Reads one name, or a list of names in the order in which their vectors are concatenated.
std::vector<PoolingMode> ReadModeNames(const Json& value, Problems& problems) {
  std::vector<PoolingMode> modes;
  const std::vector<Json> names =
      value.is_array() ? value.get<std::vector<Json>>() : std::vector{value};
  for (const Json& name : names) {
    const auto* mode = std::find_if(std::begin(kPoolingModes), std::end(kPoolingModes),
                                    [&](const ModeNames& row) { return name == row.name; });
    if (mode == std::end(kPoolingModes)) {
      problems.Add(
          absl::StrCat("pooling_mode: expected cls, max, mean, mean_sqrt_len_tokens, "
                       "weightedmean or lasttoken, found ",
                       Describe(name)));
    } else {
      modes.push_back(mode->mode);
    }
  }
  return modes;
}

absl::Status ReadModes(const std::string& folder, int64_t hidden_size,
                       PoolingDescription& pooling) {
  const std::string path = absl::StrCat(folder, "/config.json");
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  config.Integer({"word_embedding_dimension", "embedding_dimension"}, {hidden_size, hidden_size});
  pooling.excludes_prompt = !config.Boolean({"include_prompt"}, true);
  const bool has_names = config.Has({"pooling_mode"});
  pooling.modes =
      has_names ? ReadModeNames((*json)["pooling_mode"], problems) : ReadModeFlags(config);
  if (problems.empty() && (pooling.modes.empty() || pooling.modes.size() > kMostModes)) {
    problems.Add(
        absl::StrCat("expected 1 to ", kMostModes, " pooling modes, found ", pooling.modes.size()));
  }
  return problems.ToStatus();
}

// Reads a linear layer that takes vectors of this width. The beginning of the names of its weights
// is `name` in the model and `prefix` in the binder.
absl::StatusOr<DenseShape> ReadDense(const std::string& folder, const std::string& name,
                                     const std::string& prefix, int64_t in_width,
                                     const CheckpointOptions& options, WeightBinder& binder) {
  const std::string path = absl::StrCat(folder, "/config.json");
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  DenseShape dense;
  config.Integer({"in_features"}, {in_width, in_width});
  dense.width = config.Integer({"out_features"}, kHiddenSizeRange);
  const bool has_bias = config.Boolean({"bias"}, true);
  dense.activation = config.Choice<Activation>({"activation_function"}, kDenseActivations,
                                               Activation::kTanh);  // the library's default
  if (config.Boolean({"use_residual"}, false)) {
    dense.residual = dense.width == in_width ? Residual::kInput : Residual::kProjection;
  }
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  absl::StatusOr<WeightFiles> files = OpenWeightFiles(folder, options);
  if (!files.ok()) return files.status();
  binder.AddFiles(prefix, *std::move(files));
  const std::string stem = absl::StrCat(prefix, "linear");
  binder.Bind({name + ".weight", {dense.width, in_width}}, {{stem + ".weight"}});
  if (has_bias) binder.Bind({name + ".bias", {dense.width}}, {{stem + ".bias"}});
  if (dense.residual == Residual::kProjection) {
    binder.Bind({name + ".residual.weight", {dense.width, in_width}},
                {{absl::StrCat(prefix, "residual.weight")}});
  }
  return dense;
}

// Reads the linear layers of the head `name`, which come one after the other.
absl::Status ReadDenseLayers(absl::Span<const std::string> folders, const std::string& name,
                             const CheckpointOptions& options, int64_t hidden_size,
                             PoolingDescription& head, WeightBinder& binder) {
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::string part = i == 0 ? ".dense" : absl::StrCat(".further.", i - 1);
    const std::string prefix = absl::StrCat(kDensePrefix, name, i, "/");
    const absl::StatusOr<DenseShape> dense =
        ReadDense(folders[i], name + part, prefix, head.width(hidden_size), options, binder);
    if (!dense.ok()) return dense.status();
    if (i == 0) {
      head.dense_width = dense->width;
      head.dense_activation = dense->activation;
      head.dense_residual = dense->residual;
    } else {
      head.further_dense.push_back(*dense);
    }
  }
  return absl::OkStatus();
}

// Stanford's library keeps the linear layer beside the encoder.
void BindStanfordLinear(int64_t hidden_size, PoolingDescription& head, WeightBinder& binder) {
  constexpr char kWeight[] = "linear.weight";
  const FileTensor* weight = binder.Find(kWeight);
  const bool is_matrix = weight != nullptr && weight->shape.size() == 2 && weight->shape[0] > 0;
  head.dense_width = is_matrix ? weight->shape[0] : 1;
  binder.Bind({"token_head.dense.weight", {head.dense_width, hidden_size}}, {{kWeight}});
}

}  // namespace

absl::Status ReadSentenceHeads(const SentenceModules& modules, const CheckpointOptions& options,
                               ModelDescription& model, WeightBinder& binder) {
  const int64_t hidden_size = model.layer.hidden_size;
  const std::optional<PoolingMode> chosen = ModeOf(options.pooling);
  if (options.pooling == PoolingChoice::kPooler || options.pooling == PoolingChoice::kYesNo) {
    return absl::InvalidArgumentError(
        absl::StrCat(modules.transformer,
                     ": pooling=", options.pooling == PoolingChoice::kPooler ? "pooler" : "yes_no",
                     ": cannot be combined with modules.json, which says how to pool; use mean"));
  }
  if (modules.pools() || chosen) {
    PoolingDescription pooling = {.modes = {PoolingMode::kMean}};
    if (modules.transformer_pools && !chosen) pooling = *model.pooling;
    absl::Status status;
    if (!modules.pooling.empty()) status = ReadModes(modules.pooling, hidden_size, pooling);
    if (chosen) pooling.modes = {*chosen};
    pooling.normalize = modules.normalize;
    status.Update(status.ok() ? ReadDenseLayers(modules.dense, "pooling", options, hidden_size,
                                                pooling, binder)
                              : status);
    if (!status.ok()) return status;
    model.pooling = std::move(pooling);
  }
  if (!modules.has_token_head && !modules.mask) return absl::OkStatus();
  PoolingDescription token_head = {.modes = {}, .normalize = modules.normalizes_tokens};
  if (modules.is_stanford) BindStanfordLinear(hidden_size, token_head, binder);
  absl::Status status =
      ReadDenseLayers(modules.token_dense, "token_head", options, hidden_size, token_head, binder);
  if (status.ok()) model.token_head = std::move(token_head);
  return status;
}

namespace {

// Reads what a SpladePooling module, which there must be, makes of the logits of a masked language
// model with `vocabulary` words.
absl::Status ReadSpladePooling(const SentenceModules& modules, int64_t vocabulary,
                               VocabularyHeadShape& head) {
  constexpr Named<bool> kStrategies[] = {{"max", false}, {"sum", true}};
  // The library takes the logarithm of 1 plus either.
  constexpr Named<bool> kActivations[] = {{"relu", false}, {"log1p_relu", true}};
  const std::string path = absl::StrCat(modules.splade_pooling, "/config.json");
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  head.takes_sums = config.Choice<bool>({"pooling_strategy"}, kStrategies, false);
  head.has_two_logarithms = config.Choice<bool>({"activation_function"}, kActivations, false);
  const Keys width = {"embedding_dimension", "word_embedding_dimension"};
  config.Integer(width, {vocabulary, vocabulary}, vocabulary);
  return problems.ToStatus();
}

// Describes the head of a masked language model, if the files hold its weights.
std::optional<VocabularyHeadShape> DescribeVocabularyHead(const ModelConfig& config,
                                                          const std::string& prefix,
                                                          const ModelDescription& model,
                                                          const WeightBinder& binder) {
  const Family& family = *config.family;
  if (family.vocabulary_head_names.empty() || !model.embeddings) return std::nullopt;
  const auto find = [&](const char* part) {
    return FindFirst(PlacesInFile(family, prefix, absl::StrCat("vocabulary_head.", part)), binder);
  };
  const FileTensor* dense = find("dense.weight");
  const FileTensor* output = find("output.weight");
  if (dense == nullptr || dense->shape.size() != 2 || find("dense_norm.weight") == nullptr ||
      output == nullptr ||
      output->shape != std::vector{model.embeddings->vocabulary, dense->shape[0]}) {
    return std::nullopt;
  }
  const Activation of_family =
      family.vocabulary_head_activation.value_or(model.layer.feed_forward.activation);
  return VocabularyHeadShape{.width = dense->shape[0],
                             .activation = config.classifier_activation.value_or(of_family)};
}

}  // namespace

absl::Status AddVocabularyHead(const ModelConfig& config, const std::string& prefix,
                               const std::optional<SentenceModules>& modules,
                               const WeightBinder& binder, ModelDescription& model) {
  const bool has_module = modules && !modules->splade_pooling.empty();
  if (!has_module && (modules || !config.has_vocabulary_head)) return absl::OkStatus();
  std::optional<VocabularyHeadShape> head = DescribeVocabularyHead(config, prefix, model, binder);
  if (head && has_module) {
    absl::Status status = ReadSpladePooling(*modules, model.embeddings->vocabulary, *head);
    if (!status.ok()) return status;
  }
  if (!head && has_module) {
    return absl::InvalidArgumentError(absl::StrCat(
        modules->transformer,
        ": expected the head of a masked language model, for SpladePooling, found none "
        "that is computed for the family ",
        config.family->name));
  }
  model.vocabulary_head = std::move(head);
  return absl::OkStatus();
}

}  // namespace attendant
