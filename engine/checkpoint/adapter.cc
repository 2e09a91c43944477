#include "engine/checkpoint/adapter.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/low_rank_weights.h"

namespace attendant {
namespace {

constexpr char kConfigFile[] = "adapter_config.json";
constexpr char kWeightsFile[] = "adapter_model.safetensors";
constexpr char kMergeIt[] =
    "; merge the adapter with PEFT's merge_and_unload and save the model that results";

// Keys that compute something else unless they are false, null or empty.
constexpr absl::string_view kOtherKinds =
    "alora_invocation_tokens arrow_config fan_in_fan_out kasa_config layer_replication lora_bias "
    "modules_to_save monteclora_config target_parameters use_bdlora use_dora use_qalora "
    "velora_config trainable_token_indices";

// The two matrices of a module, by their names in the file.
struct AdaptedModule {
  std::string a, b;
  bool is_table = false;
};

bool IsSet(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_structured()) return !value.empty();
  return !value.is_null();
}

// The config of an adapter.
class AdapterConfig {
 public:
  static absl::StatusOr<AdapterConfig> Read(const std::string& path);

  // Returns the factor of the product of a module.
  float ScaleOf(absl::string_view module, int64_t rank) const {
    double alpha = alpha_;
    for (const auto& [pattern, of_pattern] : alphas_) {
      if (!IsEnd(pattern, module)) continue;
      alpha = of_pattern;
      break;
    }
    const auto r = static_cast<double>(rank);
    return static_cast<float>(alpha / (by_root_ ? std::sqrt(r) : r));
  }

  // Whether `end` is the last of the names between dots in `name`.
  static bool IsEnd(absl::string_view end, absl::string_view name) {
    if (!absl::ConsumeSuffix(&name, end)) return false;
    return name.empty() || absl::EndsWith(name, ".");
  }

 private:
  double alpha_ = 0;
  bool by_root_ = false;
  std::vector<std::pair<std::string, double>> alphas_;  // by what modules' names end with
};

absl::StatusOr<AdapterConfig> AdapterConfig::Read(const std::string& path) {
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
  AdapterConfig config;
  const auto read_number = [&](const std::string& key, const Json& number) {
    if (number.is_number() && std::isfinite(number.get<double>())) return number.get<double>();
    expect(key, "a number", number);
    return 0.0;
  };
  config.alpha_ = read_number("lora_alpha", json.value("lora_alpha", Json(8)));
  config.by_root_ = IsSet(value("use_rslora"));
  const Json alphas = value("alpha_pattern");
  if (alphas.is_object()) {
    for (const auto& [pattern, alpha] : alphas.items()) {
      config.alphas_.emplace_back(pattern, read_number("alpha_pattern", alpha));
      if (pattern.find_first_of("*+?()[]{}|^$\\") == pattern.npos) continue;
      problems.Add("'alpha_pattern': expected names of modules; got ", Quoted(pattern), kMergeIt);
    }
  }
  if (!problems.empty()) return problems.ToStatus();
  return config;
}

// Finds the modules, by their names without "base_model.model.".
std::map<std::string, AdaptedModule> ListModules(const WeightFiles& files, Problems& problems) {
  struct End {
    const char* text;
    bool is_a, is_table;
  };
  constexpr End kEnds[] = {{".lora_A.weight", true, false},
                           {".lora_B.weight", false, false},
                           {".lora_embedding_A", true, true},
                           {".lora_embedding_B", false, true}};
  std::map<std::string, AdaptedModule> modules;
  for (const auto& [name, tensor] : files.files.front().tensors) {
    const auto* end =
        absl::c_find_if(kEnds, [&name = name](End one) { return absl::EndsWith(name, one.text); });
    if (end == std::end(kEnds)) {
      problems.Add("tensor ", Quoted(name), ": expected a LoRA matrix", kMergeIt);
      continue;
    }
    absl::string_view module = absl::StripSuffix(name, end->text);
    absl::ConsumePrefix(&module, "base_model.model.");
    AdaptedModule& found = modules[std::string(module)];
    (end->is_a ? found.a : found.b) = name;
    found.is_table = end->is_table;
  }
  return modules;
}

// The tensor that a module adapts; null after a problem.
const CheckpointTensor* FindTensor(const std::string& module, const Checkpoint& checkpoint,
                                   Problems& problems) {
  const std::string name = module + ".weight";
  std::vector<const CheckpointTensor*> found;
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    if (tensor.weights.empty()) continue;
    if (tensor.name == name) return &tensor;
    if (AdapterConfig::IsEnd(name, tensor.name) || AdapterConfig::IsEnd(tensor.name, name)) {
      found.push_back(&tensor);
    }
  }
  if (found.size() == 1) return found.front();
  problems.Add("module ", Quoted(module), ": the model has ",
               found.empty() ? "no module" : "several modules", " of that name");
  return nullptr;
}

// Returns the products of a module, and binds its matrices. `shapes` are the model's.
LowRankProducts ReadModule(const std::string& name, const AdaptedModule& module,
                           const AdapterConfig& config, const Checkpoint& checkpoint,
                           const WeightShapes& shapes, WeightBinder& binder) {
  const CheckpointTensor* tensor = FindTensor(name, checkpoint, binder.problems());
  const FileTensor* a = binder.Find(module.a);
  if (a == nullptr || binder.Find(module.b) == nullptr || a->shape.size() != 2 || a->shape[0] < 1) {
    binder.Refuse("module ", Quoted(name), ": expected the LoRA matrices A [r, .] and B [., r]");
    return {};
  }
  if (tensor == nullptr) return {};
  const int64_t rank = a->shape[0];
  LowRankProducts of_tensor = OfTensor(*tensor, shapes,
                                       {.left = module.is_table ? module.a : module.b,
                                        .right = module.is_table ? module.b : module.a,
                                        .transposed = module.is_table,
                                        .rank = rank,
                                        .scale = config.ScaleOf(name, rank)});
  if (of_tensor.empty()) {
    binder.Refuse("module ", Quoted(name), ": the layout of the tensor ", Quoted(tensor->name),
                  " is not supported", kMergeIt);
    return {};
  }
  const int64_t rows = tensor->shape[0], columns = tensor->shape[1];
  binder.Bind({module.a, {rank, module.is_table ? rows : columns}}, {{module.a}});
  binder.Bind({module.b, {module.is_table ? columns : rows, rank}}, {{module.b}});
  return of_tensor;
}

}  // namespace

absl::Status MergeAdapter(const std::string& folder, const CheckpointOptions& options,
                          Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const AdapterConfig config,
                   AdapterConfig::Read(absl::StrCat(folder, "/", kConfigFile)));
  ASSIGN_OR_RETURN(WeightFiles files, OpenWeightFile(folder, kWeightsFile, options));
  WeightBinder binder(absl::StrCat(folder, "/", kWeightsFile));
  const std::map<std::string, AdaptedModule> modules = ListModules(files, binder.problems());
  binder.AddFiles("", std::move(files));
  const WeightShapes shapes = ShapesOf(checkpoint.description);
  LowRankProducts products;
  for (const auto& [name, module] : modules) {
    products.merge(ReadModule(name, module, config, checkpoint, shapes, binder));
  }
  if (modules.empty()) binder.Refuse("no LoRA matrices");
  CheckpointOptions of_adapter = options;
  of_adapter.weights_sha256.clear();
  Checkpoint factors;
  RETURN_IF_ERROR(binder.Finish(of_adapter, factors));
  AddProducts(std::move(products), std::move(factors.weights), checkpoint);
  return absl::OkStatus();
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
