#include "engine/checkpoint/torch/torch_modules.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/name_patterns.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/torch/attention_kind_keys.h"
#include "engine/checkpoint/torch/attention_module.h"
#include "engine/checkpoint/torch/module_ends.h"

namespace attendant {
namespace {

enum class Module { kAttention, kLayer, kEncoder, kNamed };

constexpr Named<Module> kModules[] = {
    {"nn.MultiheadAttention", Module::kAttention},
    {"nn.TransformerEncoderLayer", Module::kLayer},
    {"nn.TransformerEncoder", Module::kEncoder},
    {"attention", Module::kNamed},
};

constexpr Named<Activation> kActivations[] = {
    {"relu", Activation::kRelu},
    {"gelu", Activation::kGelu},
};

// The number of rows that in_proj_weight may have.
constexpr IntegerRange kInputRange = {1, 3 * kHiddenSizeRange.highest};

// The content of attendant.json.
struct TorchDescription {
  Module module = Module::kAttention;
  std::string file;
  LayerShape layer;  // as far as the file says
  AttentionKindKeys kind;
  ModuleEnds ends;
};

absl::StatusOr<TorchDescription> ReadDescription(const std::string& path, const Json& json) {
  Problems problems(path);
  ConfigReader config(json, problems);
  TorchDescription read;
  read.module = config.Choice<Module>({"module"}, kModules);
  if (read.module == Module::kNamed) return read;
  read.file = config.Text({"file"});
  CheckFileName(read.file, problems);
  read.layer.attention.heads = config.Integer({"num_heads"}, kHiddenSizeRange);
  NormShape& norms = read.layer.norms;
  norms.placement = NormPlacement::kNone;
  if (read.module != Module::kAttention) {
    norms.placement = config.Boolean({"norm_first"}) ? NormPlacement::kPre : NormPlacement::kPost;
    norms.epsilon = config.Number({"layer_norm_eps"}, kHighestNormEpsilon);
    read.layer.feed_forward.activation = config.Choice<Activation>({"activation"}, kActivations);
    read.kind = ReadAttentionKind(config, read.layer.attention);
    read.ends = ReadModuleEnds(config);
  }
  config.AllowOnly();
  RETURN_IF_ERROR(problems.ToStatus());
  return read;
}

// The beginning of the names of attention's tensors in a layer, after that of the layer's own.
const char* AttentionPrefix(Module module) {
  return module == Module::kAttention ? "" : "self_attn.";
}

// Returns the beginning of the names of a layer's tensors.
std::string LayerPrefix(Module module, const std::string& layer) {
  return module == Module::kEncoder ? absl::StrCat("layers.", layer, ".") : "";
}

// Returns the name of a tensor of the attention of the first layer.
std::string InAttention(Module module, const char* name) {
  return absl::StrCat(LayerPrefix(module, "0"), AttentionPrefix(module), name);
}

// Returns one size of a matrix: its rows (axis 0) or its columns (axis 1). If there is no such
// matrix, or the size is out of range, adds a problem and returns 0.
int64_t FindSize(const std::string& name, size_t axis, IntegerRange range, WeightBinder& binder) {
  const FileTensor* tensor = binder.FindMatrix(name);
  const int64_t size = tensor == nullptr ? 0 : tensor->shape[axis];
  if (size >= range.lowest && size <= range.highest) return size;
  binder.RefuseTensor(name, "a matrix of ", range.lowest, "..", range.highest,
                      axis == 0 ? " rows" : " columns");
  return 0;
}

int64_t FindRows(const std::string& name, IntegerRange range, WeightBinder& binder) {
  return FindSize(name, 0, range, binder);
}

constexpr char kOwnWidths[] =
    "expected in_proj_weight (a layer attends to its own sequence); q_proj_weight is for "
    "nn.MultiheadAttention with its own kdim or vdim";
constexpr char kOwnKeys[] =
    "expected a module without add_bias_kv, which adds a key and a value to every sequence";

// Tensors of modules that compute something else, with the reasons to refuse them.
constexpr Named<const char*> kVariants[] = {
    {"q_proj_weight", kOwnWidths}, {"k_proj_weight", kOwnWidths}, {"v_proj_weight", kOwnWidths},
    {"bias_k", kOwnKeys},          {"bias_v", kOwnKeys},
};

// Returns true if the module was made with kdim or vdim: the inputs of keys and values have other
// widths than the input of queries.
bool HasOwnWidths(Module module, const WeightBinder& binder) {
  return module == Module::kAttention && binder.Find("q_proj_weight") != nullptr;
}

void RefuseVariants(Module module, WeightBinder& binder) {
  for (const std::string& name : binder.Unbound()) {
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    if (HasOwnWidths(module, binder) && absl::EndsWith(name, "_proj_weight")) continue;
    const bool in_attention = absl::EndsWith(name, AttentionPrefix(module) + parts.back());
    const auto reason = ValueIn(kVariants, parts.back());
    if (in_attention && reason) binder.Refuse(binder.Show(name), ": ", *reason);
  }
}

int64_t CountLayers(Module module, WeightBinder& binder) {
  if (module != Module::kEncoder) return 1;
  int64_t layers = 0;
  while (layers <= kLayerRange.highest &&
         binder.Find(absl::StrCat("layers.", layers, ".self_attn.out_proj.weight")) != nullptr) {
    ++layers;
  }
  if (layers < kLayerRange.lowest || layers > kLayerRange.highest) {
    binder.Refuse("expected ", kLayerRange.lowest, "..", kLayerRange.highest,
                  " layers with layers.<i>.self_attn.out_proj.weight; got ",
                  layers > kLayerRange.highest ? "more" : "0");
  }
  return layers;
}

// Returns the number of query columns, and of key columns, that collaborative heads share: half of
// the rows of in_proj_weight without the `values` rows for values.
int64_t FindSharedColumns(const std::string& name, int64_t values, WeightBinder& binder) {
  const int64_t rows = FindRows(name, kInputRange, binder);
  if (rows == 0) return 1;
  if (rows > values && (rows - values) % 2 == 0) return (rows - values) / 2;
  binder.Refuse(binder.Show(name), ": expected ", values,
                " rows for values and an even number of rows for the queries and keys "
                "that collaborative heads share");
  return 1;
}

LayerShape DescribeLayer(const TorchDescription& read, WeightBinder& binder) {
  LayerShape layer = read.layer;
  layer.hidden_size =
      FindRows(InAttention(read.module, "out_proj.weight"), kHiddenSizeRange, binder);
  if (layer.hidden_size % layer.attention.heads != 0) {
    binder.Refuse("num_heads: expected a divisor of the width ", layer.hidden_size, "; got ",
                  layer.attention.heads);
  }
  layer.attention.key_width = layer.attention.value_width =
      layer.hidden_size / layer.attention.heads;
  if (read.kind.collaborates()) {
    const std::string inputs = InAttention(read.module, "in_proj_weight");
    const int64_t columns = FindSharedColumns(inputs, layer.hidden_size, binder);
    layer.attention.key_width =
        CollaborativeWidth(read.kind, layer.attention.heads, columns, inputs, binder);
  }
  DescribeAttentionKind(read.kind, layer, binder);
  if (HasOwnWidths(read.module, binder)) {
    layer.attention.key_input_width = FindSize("k_proj_weight", 1, kHiddenSizeRange, binder);
    layer.attention.value_input_width = FindSize("v_proj_weight", 1, kHiddenSizeRange, binder);
  }
  if (read.module == Module::kAttention) return layer;
  layer.feed_forward.width =
      FindRows(LayerPrefix(read.module, "0") + "linear1.weight", kFeedForwardRange, binder);
  return layer;
}

// Returns the names of the module's tensors. Queries, then as many keys, and values are rows of one
// tensor; with kdim or vdim only their biases are. The tensors that attendant.json names are not in
// the list.
NamePatterns ListNames(const TorchDescription& read, const LayerShape& layer, bool has_own_widths) {
  const std::string prefix = LayerPrefix(read.module, "{i}");
  const std::string attention = prefix + AttentionPrefix(read.module);
  const int64_t keys = ColumnsInFile(read.kind, layer), values = layer.context_width();
  const int64_t all = 2 * keys + values;
  NamePatterns names = {{"layer.{i}.output", attention + "out_proj"},
                        {"layer.{i}.attention_norm", prefix + "norm1"},
                        {"layer.{i}.feed_forward_in", prefix + "linear1"},
                        {"layer.{i}.feed_forward_out", prefix + "linear2"},
                        {"layer.{i}.feed_forward_norm", prefix + "norm2"},
                        {"exit_norm", "norm"}};
  const NamePatterns inputs = {{"layer.{i}.query", "q_proj_weight", {0, all, keys}},
                               {"layer.{i}.key", "k_proj_weight", {keys, all, keys}},
                               {"layer.{i}.value", "v_proj_weight", {2 * keys, all, values}}};
  for (const NamePattern& input : inputs) {
    names.push_back({input.canonical + ".bias", attention + "in_proj_bias", input.rows});
    names.push_back({input.canonical + ".weight", input.in_file});
    if (has_own_widths) continue;
    names.back() = {input.canonical + ".weight", attention + "in_proj_weight", input.rows};
  }
  return names;
}

// A layer made with bias=False has no biases at all.
bool HasLayerBias(Module module, const WeightBinder& binder) {
  return binder.Find(InAttention(module, "in_proj_bias")) != nullptr ||
         binder.Find(InAttention(module, "out_proj.bias")) != nullptr;
}

void BindAll(const ModelDescription& description, const TorchDescription& read,
             WeightBinder& binder) {
  const bool has_layer_bias = HasLayerBias(read.module, binder);
  const NamePatterns names = ListNames(read, description.layer, HasOwnWidths(read.module, binder));
  for (WeightSpec& spec : ListWeightsInFile(read.kind, description)) {
    if (BindModuleEnd(read.ends, spec, binder)) continue;
    if (BindAttentionKind(read.kind, spec, binder)) continue;
    if (absl::StartsWith(spec.name, "layer.")) {
      if (absl::EndsWith(spec.name, ".bias") && !has_layer_bias) continue;
      spec.optional = false;
    }
    binder.Bind(spec, PlacesInFile({&names}, "", spec.name));
  }
  for (const std::string& name : binder.Unbound()) {
    binder.Refuse(binder.Show(name), ": unexpected in this module");
  }
}

}  // namespace

absl::Status OpenTorchModule(const std::string& folder, const CheckpointOptions& options,
                             Checkpoint& checkpoint) {
  const std::string path = absl::StrCat(folder, "/", kTorchDescriptionFile);
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  ASSIGN_OR_RETURN(const TorchDescription read, ReadDescription(path, json));
  if (read.module == Module::kNamed) {
    return OpenAttentionModule(folder, json, options, checkpoint);
  }
  WeightBinder binder(folder);
  RETURN_IF_ERROR(binder.AddFiles("", OpenWeightFile(folder, read.file, options)));
  RefuseVariants(read.module, binder);
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  ModelDescription description;
  description.family = NameIn(kModules, read.module);
  description.layers = CountLayers(read.module, binder);
  description.layer = DescribeLayer(read, binder);
  description.has_exit_norm =
      read.module == Module::kEncoder && binder.Find("norm.weight") != nullptr;
  DescribeModuleEnds(read.ends, binder, description);
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  BindAll(description, read, binder);
  checkpoint.description = std::move(description);
  RETURN_IF_ERROR(binder.Finish(options, checkpoint));
  checkpoint.weights = WithSinusoids(
      kSinusoidsName,
      {.kind = read.ends.sinusoids,
       .positions = read.ends.max_positions,
       .width = checkpoint.description.layer.hidden_size},
      WithAttentionKind(read.kind, checkpoint.description, std::move(checkpoint.weights)));
  return absl::OkStatus();
}

}  // namespace attendant
