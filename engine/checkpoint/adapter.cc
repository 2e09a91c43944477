#include "engine/checkpoint/adapter.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/other_formats.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/low_rank_weights.h"

namespace attendant {
namespace {

constexpr char kConfigFile[] = "adapter_config.json";
constexpr char kWeightsFile[] = "adapter_model.safetensors";
constexpr char kPickledWeights[] = "adapter_model.bin";
constexpr char kMergeIt[] =
    "; merge the adapter with PEFT's merge_and_unload and save the model that results";

// Keys that compute something else unless they are false, null or empty.
constexpr absl::string_view kOtherKinds =
    "alora_invocation_tokens arrow_config fan_in_fan_out kasa_config layer_replication lora_bias "
    "modules_to_save monteclora_config target_parameters use_bdlora use_dora use_qalora "
    "velora_config trainable_token_indices";

// The beginnings of values of init_lora_weights that change the base's weights, too. PEFT changes
// them again whenever it loads the adapter.
constexpr const char* kChangesOfBase[] = {"pissa", "corda", "olora", "loftq"};

// The ends of the names of a module's two matrices.
struct Ends {
  const char *a, *b;
};

constexpr Ends kLinearEnds = {".lora_A.weight", ".lora_B.weight"};
constexpr Ends kTableEnds = {".lora_embedding_A", ".lora_embedding_B"};

bool IsSet(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_structured()) return !value.empty();
  return !value.is_null();
}

// Whether `end` is the last of the names between dots in `name`.
bool IsEnd(absl::string_view end, absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, end)) return false;
  return name.empty() || absl::EndsWith(name, ".");
}

// The config of an adapter.
struct AdapterConfig {
  // Returns the factor of the product of a module.
  float ScaleOf(absl::string_view module, int64_t rank) const {
    const auto own =
        absl::c_find_if(alphas, [&](const auto& of) { return IsEnd(of.first, module); });
    const auto r = static_cast<double>(rank);
    return static_cast<float>((own == alphas.end() ? alpha : own->second) /
                              (by_root ? std::sqrt(r) : r));
  }

  double alpha = 0;
  bool by_root = false;
  std::vector<std::pair<std::string, double>> alphas;  // by what modules' names end with
};

absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  Problems problems(path);
  const auto value = [&](absl::string_view key) { return json.value(std::string(key), Json()); };
  const auto expect = [&](const std::string& key, const char* expected, const Json& found) {
    problems.Add(Quoted(key), ": expected ", expected, "; got ", Describe(found));
  };
  if (!json.is_object()) {
    problems.Add("expected an object; got ", Describe(json));
    return problems.ToStatus();
  }
  if (value("peft_type") != "LORA") expect("peft_type", "'LORA'", value("peft_type"));
  const Json bias = json.value("bias", Json("none"));
  if (bias != "none") problems.Add("'bias': expected 'none'; got ", Describe(bias), kMergeIt);
  for (const absl::string_view key : absl::StrSplit(kOtherKinds, ' ')) {
    if (!IsSet(value(key))) continue;
    problems.Add(Quoted(key), ": not supported", kMergeIt);
  }
  const std::string start = absl::AsciiStrToLower(TextAt(json, "init_lora_weights"));
  for (const char* change : kChangesOfBase) {
    if (!absl::StartsWith(start, change)) continue;
    problems.Add("'init_lora_weights': not supported: ", Describe(value("init_lora_weights")),
                 " changes the base's weights", kMergeIt);
  }
  AdapterConfig config;
  const auto read_number = [&](const std::string& key, const Json& number) {
    if (number.is_number() && std::isfinite(number.get<double>())) return number.get<double>();
    expect(key, "a number", number);
    return 0.0;
  };
  config.alpha = read_number("lora_alpha", json.value("lora_alpha", Json(8)));
  config.by_root = IsSet(value("use_rslora"));
  const Json alphas = value("alpha_pattern");
  if (alphas.is_object()) {
    for (const auto& [pattern, alpha] : alphas.items()) {
      config.alphas.emplace_back(pattern, read_number("alpha_pattern", alpha));
      if (pattern.find_first_of("*+?()[]{}|^$\\") == pattern.npos) continue;
      problems.Add("'alpha_pattern': expected names of modules; got ", Quoted(pattern), kMergeIt);
    }
  }
  if (!problems.empty()) return problems.ToStatus();
  return config;
}

// Finds the modules, by the names of their matrices without their ends, and whether each is a
// table.
std::map<std::string, bool> ListModules(WeightBinder& binder) {
  std::map<std::string, bool> modules;
  for (const std::string& name : binder.Unbound()) {
    absl::string_view stem = name;
    const auto take = [&](const Ends& ends) {
      return absl::ConsumeSuffix(&stem, ends.a) || absl::ConsumeSuffix(&stem, ends.b);
    };
    if (const bool is_linear = take(kLinearEnds); is_linear || take(kTableEnds)) {
      modules[std::string(stem)] = !is_linear;
    } else {
      binder.Refuse("tensor ", Quoted(name), ": expected a LoRA matrix", kMergeIt);
    }
  }
  return modules;
}

// The name of the module whose matrices' names begin with `stem`.
std::string NameOf(const std::string& stem) {
  return std::string(absl::StripPrefix(stem, "base_model.model."));
}

// The tensor that a module adapts, which the model may not use; null after a problem.
const CheckpointTensor* FindTensor(const std::string& module, const Checkpoint& checkpoint,
                                   Problems& problems) {
  const std::string name = module + ".weight";
  std::vector<const CheckpointTensor*> found, unused;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    if (tensor.name == name) return &tensor;
    if (IsEnd(name, tensor.name) || IsEnd(tensor.name, name)) {
      (tensor.weights.empty() ? unused : found).push_back(&tensor);
    }
  }
  if (found.empty()) found = std::move(unused);
  if (found.size() == 1) return found.front();
  problems.Add("module ", Quoted(module), ": the model has ",
               found.empty() ? "no module" : "several modules", " of that name", kMergeIt);
  return nullptr;
}

// Returns the products of the module whose matrices' names begin with `stem`, and binds them.
// `tensor` is null after a problem; `shapes` are the model's.
LowRankProducts ReadModule(const std::string& stem, bool is_table, const CheckpointTensor* tensor,
                           const AdapterConfig& config, const WeightShapes& shapes,
                           WeightBinder& binder) {
  const std::string name = NameOf(stem);
  const Ends& ends = is_table ? kTableEnds : kLinearEnds;
  const std::string a_name = stem + ends.a, b_name = stem + ends.b;
  const FileTensor* a = binder.Find(a_name);
  if (a == nullptr || binder.Find(b_name) == nullptr || a->shape.size() != 2 || a->shape[0] < 1) {
    binder.Refuse("module ", Quoted(name), ": expected the LoRA matrices A [r, .] and B [., r]");
    return {};
  }
  if (tensor == nullptr) return {};
  const int64_t rank = a->shape[0];
  // The matrices of a table are stored as [rank, rows] and [columns, rank].
  const std::string& left = is_table ? a_name : b_name;
  const std::string& right = is_table ? b_name : a_name;
  LowRankProducts of_tensor =
      OfTensor(*tensor, shapes,
               {.left = left, .right = right, .rank = rank, .scale = config.ScaleOf(name, rank)});
  if (of_tensor.empty()) {
    binder.Refuse("module ", Quoted(name), ": the layout of the tensor ", Quoted(tensor->name),
                  " is not supported", kMergeIt);
    return {};
  }
  binder.Bind({left, {tensor->shape[0], rank}}, {{.name = left, .transposed = is_table}});
  binder.Bind({right, {rank, tensor->shape[1]}}, {{.name = right, .transposed = is_table}});
  return of_tensor;
}

}  // namespace

absl::Status MergeAdapter(const std::string& folder, const CheckpointOptions& options,
                          Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const AdapterConfig config,
                   ReadAdapterConfig(absl::StrCat(folder, "/", kConfigFile)));
  const std::string path = absl::StrCat(folder, "/", kWeightsFile);
  if (!PathExists(path) && PathExists(absl::StrCat(folder, "/", kPickledWeights))) {
    return RefusePickle(folder, kPickledWeights, kWeightsFile);
  }
  WeightBinder binder(path);
  RETURN_IF_ERROR(binder.AddFiles("", OpenWeightFile(folder, kWeightsFile, options)));
  const std::map<std::string, bool> modules = ListModules(binder);
  const WeightShapes shapes = ShapesOf(checkpoint.description);
  LowRankProducts products;
  std::vector<std::string> unused;
  for (const auto& [stem, is_table] : modules) {
    const CheckpointTensor* tensor = FindTensor(NameOf(stem), checkpoint, binder.problems());
    if (tensor != nullptr && tensor->weights.empty()) {
      unused.push_back(Quoted(NameOf(stem)));
    } else {
      products.merge(ReadModule(stem, is_table, tensor, config, shapes, binder));
    }
  }
  if (modules.empty()) binder.Refuse("no LoRA matrices");
  CheckpointOptions of_adapter = options;
  of_adapter.weights_sha256.clear();
  Checkpoint factors;
  RETURN_IF_ERROR(binder.Finish(of_adapter, factors));
  AddProducts(products, std::move(factors.weights), checkpoint);
  if (!unused.empty()) {
    checkpoint.warnings.push_back(
        absl::StrCat(path, ": no effect, because the model does not use these modules: ",
                     absl::StrJoin(unused, ", ")));
  }
  return absl::OkStatus();
}

absl::Status CheckModulesOfAdapter(const std::string& folder, const std::string& base) {
  const std::string path = absl::StrCat(folder, "/modules.json");
  if (!PathExists(path) || PathExists(absl::StrCat(base, "/modules.json"))) {
    return absl::OkStatus();
  }
  return InvalidArgument(path, ": not supported without a modules.json of the base ", base,
                         "; copy it, the directories that it lists, sentence_bert_config.json and "
                         "config_sentence_transformers.json to the base, or decide with pooling=");
}

absl::Status RefuseAdapterAlone(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kConfigFile);
  if (!PathExists(path)) return absl::OkStatus();
  const std::string base = TextAt(ReadObjectOrEmpty(path), "base_model_name_or_path");
  return InvalidArgument(folder, ": expected a model; got only an adapter of ",
                         base.empty() ? "another model" : Quoted(base),
                         "; serve both: NAME=DIRECTORY_OF_THAT_MODEL,adapter=", folder);
}

}  // namespace attendant
