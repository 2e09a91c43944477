#include "engine/checkpoint/torch/torch_modules.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/bounds.h"
#include "engine/checkpoint/families/config_reader.h"
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
  int64_t num_heads = 0;
  bool norm_first = false;
  Activation activation = Activation::kRelu;
  float layer_norm_eps = 0;
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
  if (problems.empty() && !IsPlainName(read.file)) {
    problems.Add("file: expected the plain name of a file in this directory; got ",
                 Quoted(read.file));
  }
  read.num_heads = config.Integer({"num_heads"}, kHiddenSizeRange);
  Keys keys = {"module", "file", "num_heads"};
  if (read.module != Module::kAttention) {
    read.norm_first = config.Boolean({"norm_first"});
    read.activation = config.Choice<Activation>({"activation"}, kActivations);
    read.layer_norm_eps = config.Number({"layer_norm_eps"}, kHighestNormEpsilon);
    keys.insert(keys.end(), {"norm_first", "activation", "layer_norm_eps"});
    read.kind = ReadAttentionKind(config, keys);
    read.ends = ReadModuleEnds(config, keys);
  }
  config.AllowOnly(keys);
  RETURN_IF_ERROR(problems.ToStatus());
  return read;
}

// The prefixes of a module's tensors in its state dict.
struct Layout {
  Module module;
  std::string layers;     // "layers.", before each index; empty for a single layer
  std::string attention;  // "self_attn."; empty for nn.MultiheadAttention
};

Layout LayoutOf(Module module) {
  return {module, module == Module::kEncoder ? "layers." : "",
          module == Module::kAttention ? "" : "self_attn."};
}

std::string LayerPrefix(const Layout& layout, int64_t layer) {
  return layout.layers.empty() ? "" : absl::StrCat(layout.layers, layer, ".");
}

std::string AttentionPrefix(const Layout& layout, int64_t layer) {
  return absl::StrCat(LayerPrefix(layout, layer), layout.attention);
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

struct Variant {
  absl::string_view tensor;
  const char* reason;
};

constexpr char kOwnWidths[] =
    "expected in_proj_weight (a layer attends to its own sequence); q_proj_weight is for "
    "nn.MultiheadAttention with its own kdim or vdim";
constexpr char kOwnKeys[] =
    "expected a module without add_bias_kv, which adds a key and a value to every sequence";

// Tensors of modules that compute something else, with the reasons to refuse them.
constexpr Variant kVariants[] = {
    {"q_proj_weight", kOwnWidths}, {"k_proj_weight", kOwnWidths}, {"v_proj_weight", kOwnWidths},
    {"bias_k", kOwnKeys},          {"bias_v", kOwnKeys},
};

// Returns true if the module was made with kdim or vdim: the inputs of keys and values have other
// widths than the input of queries.
bool HasOwnWidths(const Layout& layout, const WeightBinder& binder) {
  return layout.module == Module::kAttention && binder.Find("q_proj_weight") != nullptr;
}

void RefuseVariants(const Layout& layout, WeightBinder& binder) {
  for (const std::string& name : binder.Unbound()) {
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    if (HasOwnWidths(layout, binder) && absl::EndsWith(name, "_proj_weight")) continue;
    const bool in_attention = absl::EndsWith(
        absl::string_view(name).substr(0, name.size() - parts.back().size()), layout.attention);
    for (const Variant& variant : kVariants) {
      if (!in_attention || parts.back() != variant.tensor) continue;
      binder.Refuse(binder.Show(name), ": ", variant.reason);
    }
  }
}

int64_t CountLayers(const Layout& layout, WeightBinder& binder) {
  if (layout.module != Module::kEncoder) return 1;
  int64_t layers = 0;
  while (layers <= kLayerRange.highest &&
         binder.Find(AttentionPrefix(layout, layers) + "out_proj.weight") != nullptr) {
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

LayerShape DescribeLayer(const TorchDescription& read, const Layout& layout, WeightBinder& binder) {
  LayerShape layer;
  layer.hidden_size =
      FindRows(AttentionPrefix(layout, 0) + "out_proj.weight", kHiddenSizeRange, binder);
  layer.attention.heads = read.num_heads;
  if (layer.hidden_size % layer.attention.heads != 0) {
    binder.Refuse("num_heads: expected a divisor of the width ", layer.hidden_size, "; got ",
                  layer.attention.heads);
  }
  layer.attention.key_width = layer.attention.value_width =
      layer.hidden_size / layer.attention.heads;
  if (read.kind.collaborates()) {
    const std::string inputs = AttentionPrefix(layout, 0) + "in_proj_weight";
    const int64_t columns = FindSharedColumns(inputs, layer.hidden_size, binder);
    layer.attention.key_width =
        CollaborativeWidth(read.kind, layer.attention.heads, columns, inputs, binder);
  }
  DescribeAttentionKind(read.kind, layer, binder);
  layer.norms.placement = NormPlacement::kNone;
  if (HasOwnWidths(layout, binder)) {
    layer.attention.key_input_width = FindSize("k_proj_weight", 1, kHiddenSizeRange, binder);
    layer.attention.value_input_width = FindSize("v_proj_weight", 1, kHiddenSizeRange, binder);
  }
  if (layout.module == Module::kAttention) return layer;
  layer.feed_forward.width =
      FindRows(LayerPrefix(layout, 0) + "linear1.weight", kFeedForwardRange, binder);
  layer.norms.placement = read.norm_first ? NormPlacement::kPre : NormPlacement::kPost;
  layer.norms.epsilon = read.layer_norm_eps;
  layer.feed_forward.activation = read.activation;
  return layer;
}

// The tensor, or the part of one, that a weight of a layer is made of.
struct Origin {
  absl::string_view weight;
  const char* stem;  // the tensor's name up to "weight" or "bias"
  bool in_attention = false;
  bool is_part = false;  // queries, keys and values are stacked in it
};

constexpr Origin kOrigins[] = {
    {"query", "in_proj_", true, true}, {"key", "in_proj_", true, true},
    {"value", "in_proj_", true, true}, {"output", "out_proj.", true},
    {"attention_norm", "norm1."},      {"feed_forward_in", "linear1."},
    {"feed_forward_out", "linear2."},  {"feed_forward_norm", "norm2."},
};

// The tensors of nn.MultiheadAttention with kdim or vdim. Its biases are still stacked, as in
// kOrigins.
constexpr Origin kOwnOrigins[] = {
    {"query", "q_proj_", true}, {"key", "k_proj_", true}, {"value", "v_proj_", true}};

// The rows of a stacked input projection: queries, then as many keys, then values.
struct InputRows {
  RowPart Of(absl::string_view weight) const {
    const int64_t all = 2 * keys + values;
    if (weight == "query") return {0, all, keys};
    return weight == "key" ? RowPart{keys, all, keys} : RowPart{2 * keys, all, values};
  }

  int64_t keys;
  int64_t values;
};

// A layer made with bias=False has no biases at all.
bool HasLayerBias(const Layout& layout, const WeightBinder& binder) {
  for (const char* name : {"in_proj_bias", "out_proj.bias"}) {
    if (binder.Find(AttentionPrefix(layout, 0) + name) != nullptr) return true;
  }
  return false;
}

void BindLayerWeight(const Layout& layout, const InputRows& inputs, const WeightSpec& spec,
                     WeightBinder& binder) {
  const std::vector<std::string> parts = absl::StrSplit(spec.name, '.');  // layer, i, what, kind
  const std::string prefix = layout.layers.empty() ? "" : layout.layers + parts[1] + ".";
  const auto bind = [&](absl::Span<const Origin> origins) {
    for (const Origin& origin : origins) {
      if (parts[2] != origin.weight) continue;
      const std::string name =
          absl::StrCat(prefix, origin.in_attention ? layout.attention : "", origin.stem, parts[3]);
      binder.Bind(spec, {{name, origin.is_part ? inputs.Of(parts[2]) : RowPart()}});
      return true;
    }
    return false;
  };
  if (HasOwnWidths(layout, binder) && parts[3] == "weight" && bind(kOwnOrigins)) return;
  bind(kOrigins);
}

void BindAll(const ModelDescription& description, const Layout& layout,
             const TorchDescription& read, WeightBinder& binder) {
  const bool has_layer_bias = HasLayerBias(layout, binder);
  const InputRows inputs = {ColumnsInFile(read.kind, description.layer),
                            description.layer.context_width()};
  for (WeightSpec& spec : ListWeightsInFile(read.kind, description)) {
    if (BindModuleEnd(read.ends, spec, binder)) continue;
    if (BindAttentionKind(read.kind, spec, binder)) continue;
    if (!absl::StartsWith(spec.name, "layer.")) {  // the exit norm
      binder.Bind(spec, {{std::string(absl::StripPrefix(spec.name, "exit_"))}});
      continue;
    }
    if (absl::EndsWith(spec.name, ".bias") && !has_layer_bias) continue;
    spec.optional = false;
    BindLayerWeight(layout, inputs, spec, binder);
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
  ASSIGN_OR_RETURN(WeightFiles files, OpenWeightFile(folder, read.file, options));
  WeightBinder binder(folder);
  binder.AddFiles("", std::move(files));

  const Layout layout = LayoutOf(read.module);
  RefuseVariants(layout, binder);
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  ModelDescription description;
  description.family = NameIn(kModules, read.module);
  description.layers = CountLayers(layout, binder);
  description.layer = DescribeLayer(read, layout, binder);
  description.has_exit_norm =
      read.module == Module::kEncoder && binder.Find("norm.weight") != nullptr;
  DescribeModuleEnds(read.ends, binder, description);
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  BindAll(description, layout, read, binder);
  checkpoint.description = std::move(description);
  RETURN_IF_ERROR(binder.Finish(options, checkpoint));
  const LayerShape& layer = checkpoint.description.layer;
  checkpoint.weights =
      WithSinusoids(kSinusoidsName,
                    {.kind = read.ends.sinusoids,
                     .positions = read.ends.max_positions,
                     .width = layer.hidden_size},
                    WithAttentionKind(read.kind, layer, std::move(checkpoint.weights)));
  return absl::OkStatus();
}

}  // namespace attendant
