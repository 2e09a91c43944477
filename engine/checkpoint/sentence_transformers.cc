#include "engine/checkpoint/sentence_transformers.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/families/bounds.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

constexpr int64_t kMostModules = 16;
// The vectors that a Dense takes and gives, by whether there is a Pooling before it.
constexpr char kPooledVectors[] = "sentence_embedding", kTokenVectors[] = "token_embeddings";

enum class Module { kTransformer, kPooling, kDense, kNormalize, kSpladePooling };

constexpr Named<Module> kModules[] = {
    {"Transformer", Module::kTransformer},
    {"MLMTransformer", Module::kTransformer},  // before version 5.4, for SpladePooling
    {"Pooling", Module::kPooling},
    {"Dense", Module::kDense},
    {"Normalize", Module::kNormalize},
    {"SpladePooling", Module::kSpladePooling},
};

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

// Returns the folder of a module: the folder of the model, or one directly inside it.
std::string ModuleFolder(const std::string& folder, const std::string& path, Problems& problems) {
  if (path.empty()) return folder;
  if (!IsPlainName(path)) {
    problems.Add(absl::StrCat("path: expected the plain name of a folder in this one, found ",
                              Quoted(path)));
  }
  return absl::StrCat(folder, "/", path);
}

// Adds one entry of modules.json. `next` is the lowest type that may still come.
void AddModule(const std::string& folder, const Json& entry, int& next, SentenceModules& modules,
               Problems& problems) {
  ConfigReader reader(entry, problems);
  const std::string type = reader.Text({"type"});
  const std::vector<std::string> parts = absl::StrSplit(type, '.');
  const std::string path = ModuleFolder(folder, reader.Text({"path"}, ""), problems);
  for (const Named<Module>& module : kModules) {
    const bool is_token_dense = parts.front() == "pylate" && module.value == Module::kDense;
    if (parts.front() != "sentence_transformers" && !is_token_dense) continue;
    if (parts.back() != module.name) continue;
    if (static_cast<int>(module.value) < next) {
      problems.Add(
          absl::StrCat("expected Transformer, Pooling, Dense and Normalize at most once "
                       "and in this order, found another ",
                       module.name));
    }
    next = static_cast<int>(module.value) + 1;
    if (module.value == Module::kTransformer) modules.transformer = path;
    if (module.value == Module::kPooling) modules.pooling = path;
    if (module.value == Module::kDense) modules.dense = path;
    if (module.value == Module::kNormalize) modules.normalize = true;
    if (module.value == Module::kSpladePooling) modules.splade_pooling = path;
    return;
  }
  problems.Add(
      absl::StrCat("type: expected Transformer, Pooling, Dense, Normalize or SpladePooling of "
                   "sentence_transformers, found ",
                   Quoted(type)));
}

std::vector<PoolingMode> ReadModeFlags(ConfigReader& config) {
  std::vector<PoolingMode> modes;
  for (const ModeNames& mode : kPoolingModes) {
    if (config.Boolean({mode.flag}, false)) modes.push_back(mode.mode);
  }
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
  const bool has_names = config.Has({"pooling_mode"});
  pooling.modes =
      has_names ? ReadModeNames((*json)["pooling_mode"], problems) : ReadModeFlags(config);
  if (problems.empty() && (pooling.modes.empty() || pooling.modes.size() > kMostModes)) {
    problems.Add(
        absl::StrCat("expected 1 to ", kMostModes, " pooling modes, found ", pooling.modes.size()));
  }
  return problems.ToStatus();
}

// Reads the linear layer of a head called `name`, which takes vectors of this width.
absl::Status ReadDense(const std::string& folder, const std::string& name, int64_t in_width,
                       const CheckpointOptions& options, PoolingDescription& head,
                       WeightBinder& binder) {
  const std::string path = absl::StrCat(folder, "/config.json");
  const char* const expected = head.modes.empty() ? kTokenVectors : kPooledVectors;
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  config.Integer({"in_features"}, {in_width, in_width});
  head.dense_width = config.Integer({"out_features"}, kHiddenSizeRange);
  const bool has_bias = config.Boolean({"bias"}, true);
  head.dense_activation = config.Choice<Activation>({"activation_function"}, kDenseActivations);
  for (const char* key : {"module_input_name", "module_output_name"}) {
    const std::string vectors = config.Text({key}, expected);
    if (vectors == expected) continue;
    problems.Add(absl::StrCat(key, ": expected '", expected, "', found ", Quoted(vectors)));
  }
  if (config.Boolean({"use_residual"}, false)) {
    problems.Add("use_residual: expected false, found true");
  }
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  absl::StatusOr<WeightFiles> files = OpenWeightFiles(folder, options);
  if (!files.ok()) return files.status();
  binder.AddFiles(kDensePrefix, *std::move(files));
  const std::string stem = absl::StrCat(kDensePrefix, "linear");
  binder.Bind({name + ".dense.weight", {head.dense_width, in_width}}, {{stem + ".weight"}});
  if (has_bias) binder.Bind({name + ".dense.bias", {head.dense_width}}, {{stem + ".bias"}});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<SentenceModules>> ReadSentenceModules(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/modules.json");
  if (!PathExists(path)) return std::optional<SentenceModules>();
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  SentenceModules modules;
  if (!json->is_array() || static_cast<int64_t>(json->size()) > kMostModules) {
    problems.Add(absl::StrCat("expected a list of at most ", kMostModules, " modules"));
    return problems.ToStatus();
  }
  int next = 0;
  for (const Json& entry : *json) AddModule(folder, entry, next, modules, problems);
  if (problems.empty() && modules.transformer.empty()) {
    problems.Add("expected a Transformer, found none");
  }
  if (problems.empty() && !modules.splade_pooling.empty() &&
      (!modules.pooling.empty() || !modules.dense.empty() || modules.normalize)) {
    problems.Add("expected SpladePooling right behind the Transformer, found others beside it");
  }
  if (problems.empty() && modules.pooling.empty() && modules.dense.empty() && modules.normalize) {
    problems.Add("expected a Pooling or a Dense before Normalize, found none");
  }
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  return std::optional<SentenceModules>(std::move(modules));
}

absl::Status ReadSentenceHeads(const SentenceModules& modules, const CheckpointOptions& options,
                               ModelDescription& model, WeightBinder& binder) {
  const bool pools = !modules.pooling.empty();
  if (!pools && modules.dense.empty()) return absl::OkStatus();
  const int64_t hidden_size = model.layer.hidden_size;
  PoolingDescription head;
  absl::Status status;
  if (pools) status = ReadModes(modules.pooling, hidden_size, head);
  if (status.ok() && !modules.dense.empty()) {
    status = ReadDense(modules.dense, pools ? "pooling" : "token_head",
                       head.input_width(hidden_size), options, head, binder);
  }
  head.normalize = modules.normalize;
  (pools ? model.pooling : model.token_head) = std::move(head);
  return status;
}

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

}  // namespace attendant
