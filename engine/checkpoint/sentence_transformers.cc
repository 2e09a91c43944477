#include "engine/checkpoint/sentence_transformers.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
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
std::vector<PoolingMode> ReadModeNames(const ConfigReader& config) {
  std::vector<PoolingMode> modes;
  const Json& value = config.json()["pooling_mode"];
  for (const Json& name : value.is_array() ? value : Json::array({value})) {
    const auto* mode =
        absl::c_find_if(kPoolingModes, [&](const ModeNames& row) { return name == row.name; });
    if (mode == std::end(kPoolingModes)) {
      config.Refuse(
          "pooling_mode: expected cls, max, mean, mean_sqrt_len_tokens, weightedmean or "
          "lasttoken; got ",
          Describe(name));
    } else {
      modes.push_back(mode->mode);
    }
  }
  return modes;
}

absl::Status ReadModes(const std::string& folder, PoolingDescription& pooling) {
  return ReadConfig(absl::StrCat(folder, "/config.json"), [&](ConfigReader& config) {
    // Not used, as in the library: files of other models may have been copied.
    config.Integer({"word_embedding_dimension", "embedding_dimension"}, kHiddenSizeRange);
    pooling.excludes_prompt = !config.Boolean({"include_prompt"}, true);
    pooling.modes = config.Has({"pooling_mode"}) ? ReadModeNames(config) : ReadModeFlags(config);
    if (config.problems().empty() && (pooling.modes.empty() || pooling.modes.size() > kMostModes)) {
      config.Refuse("expected 1..", kMostModes, " pooling modes; got ", pooling.modes.size());
    }
  });
}

// Reads a linear layer that takes vectors of this width. Its weights are named `name` in the model
// and `prefix` in the binder.
absl::StatusOr<DenseShape> ReadDense(const std::string& folder, const std::string& name,
                                     const std::string& prefix, int64_t in_width,
                                     const CheckpointOptions& options, WeightBinder& binder) {
  DenseShape dense;
  bool has_bias = true;
  const auto read = [&](ConfigReader& config) {
    config.Integer({"in_features"}, {in_width, in_width});
    dense.width = config.Integer({"out_features"}, kHiddenSizeRange);
    has_bias = config.Boolean({"bias"}, true);
    dense.activation = config.Choice<Activation>({"activation_function"}, kDenseActivations,
                                                 Activation::kTanh);  // the library's default
    if (!config.Boolean({"use_residual"}, false)) return;
    dense.residual = dense.width == in_width ? Residual::kInput : Residual::kProjection;
  };
  RETURN_IF_ERROR(ReadConfig(absl::StrCat(folder, "/config.json"), read));
  RETURN_IF_ERROR(binder.AddFiles(prefix, OpenWeightFiles(folder, options)));
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
    ASSIGN_OR_RETURN(const DenseShape dense, ReadDense(folders[i], name + part, prefix,
                                                       head.width(hidden_size), options, binder));
    if (i == 0) {
      head.dense_width = dense.width;
      head.dense_activation = dense.activation;
      head.dense_residual = dense.residual;
    } else {
      head.further_dense.push_back(dense);
    }
  }
  return absl::OkStatus();
}

// Stanford's library keeps the linear layer in the encoder's files.
void BindStanfordLinear(int64_t hidden_size, PoolingDescription& head, WeightBinder& binder) {
  constexpr char kWeight[] = "linear.weight";
  const FileTensor* weight = binder.FindMatrix(kWeight);
  head.dense_width = weight == nullptr ? 1 : weight->shape[0];
  binder.Bind({"token_head.dense.weight", {head.dense_width, hidden_size}}, {{kWeight}});
}

}  // namespace

absl::Status ReadSentenceHeads(const SentenceModules& modules, const CheckpointOptions& options,
                               ModelDescription& model, WeightBinder& binder) {
  const int64_t hidden_size = model.layer.hidden_size;
  const std::optional<PoolingMode> chosen = ModeOf(options.pooling);
  if (options.pooling != PoolingChoice::kAsFiles && !chosen) {
    return InvalidArgument(
        modules.transformer, ": pooling=", NameIn(kPoolingChoiceNames, options.pooling),
        ": cannot be combined with modules.json, which says how to pool; use mean");
  }
  if (modules.pools() || chosen) {
    PoolingDescription pooling = {.modes = {PoolingMode::kMean}};
    if (modules.transformer_pools && !chosen) pooling = *model.pooling;
    if (!modules.pooling.empty()) {
      RETURN_IF_ERROR(ReadModes(modules.pooling, pooling));
    }
    if (chosen) pooling.modes = {*chosen};
    pooling.normalize = modules.normalize;
    RETURN_IF_ERROR(
        ReadDenseLayers(modules.dense, "pooling", options, hidden_size, pooling, binder));
    model.pooling = std::move(pooling);
  }
  if (!modules.has_token_head && modules.mask.empty()) return absl::OkStatus();
  PoolingDescription token_head = {.modes = {}, .normalize = modules.normalizes_tokens};
  if (modules.is_stanford) BindStanfordLinear(hidden_size, token_head, binder);
  RETURN_IF_ERROR(
      ReadDenseLayers(modules.token_dense, "token_head", options, hidden_size, token_head, binder));
  model.token_head = std::move(token_head);
  return absl::OkStatus();
}

namespace {

// Reads how the SpladePooling module, which must exist, pools MLM logits of `vocabulary` tokens.
absl::Status ReadSpladePooling(const SentenceModules& modules, int64_t vocabulary,
                               VocabularyHeadShape& head) {
  constexpr Named<bool> kStrategies[] = {{"max", false}, {"sum", true}};
  // The library takes the logarithm of 1 plus either.
  constexpr Named<bool> kActivations[] = {{"relu", false}, {"log1p_relu", true}};
  return ReadConfig(modules.splade_pooling + "/config.json", [&](ConfigReader& config) {
    head.takes_sums = config.Choice<bool>({"pooling_strategy"}, kStrategies, false);
    head.has_two_logarithms = config.Choice<bool>({"activation_function"}, kActivations, false);
    const Keys width = {"embedding_dimension", "word_embedding_dimension"};
    config.Integer(width, {vocabulary, vocabulary}, vocabulary);
  });
}

// Describes the head of a masked language model, if the files hold its weights.
std::optional<VocabularyHeadShape> DescribeVocabularyHead(const ModelConfig& config,
                                                          const FamilyTensors& tensors,
                                                          const ModelDescription& model) {
  const Family& family = tensors.family;
  if (family.vocabulary_head_names.empty() || !model.embeddings) return std::nullopt;
  const auto find = [&](const std::string& part) {
    return tensors.Find("vocabulary_head." + part);
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

absl::Status AddVocabularyHead(const ModelConfig& config,
                               const std::optional<SentenceModules>& modules,
                               const FamilyTensors& tensors, ModelDescription& model) {
  const bool has_module = modules && !modules->splade_pooling.empty();
  if (!has_module && (modules || !config.has_vocabulary_head)) return absl::OkStatus();
  std::optional<VocabularyHeadShape> head = DescribeVocabularyHead(config, tensors, model);
  if (head && has_module) {
    RETURN_IF_ERROR(ReadSpladePooling(*modules, model.embeddings->vocabulary, *head));
  }
  if (!head && has_module) {
    return InvalidArgument(modules->transformer,
                           ": SpladePooling: requires an MLM head that is computed for the family ",
                           config.family->name);
  }
  model.vocabulary_head = std::move(head);
  return absl::OkStatus();
}

}  // namespace attendant
