#include "engine/checkpoint/torch/attention_module.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/torch/attention_kind_keys.h"
#include "engine/checkpoint/torch/torch_modules.h"

namespace attendant {
namespace {

constexpr char kHead[] = "{head}";
constexpr const char* kInputs[] = {"query", "key", "value"};

constexpr Named<bool> kLayouts[] = {{"out_in", false}, {"in_out", true}};

struct AttentionModule {
  std::string file;  // empty if there is none
  LayerShape layer;  // as far as the file says: without input projections also its width
  bool transposed = false;
  AttentionKindKeys kind;
  std::string query, key, value, output;  // empty if there is none

  bool has_input_projection() const { return !query.empty(); }
  const std::string& name(const std::string& what) const {
    if (what == "query") return query;
    if (what == "key") return key;
    if (what == "value") return value;
    return output;
  }
};

void ReadInputs(ConfigReader& config, AttentionModule& read) {
  int given = 0;
  for (const char* input : kInputs) given += config.Has({input});
  if (given == 0) {
    read.layer.hidden_size = config.Integer({"hidden_size"}, kHiddenSizeRange);
    if (config.problems().empty() && read.layer.hidden_size % read.layer.attention.heads != 0) {
      config.Refuse("num_heads: expected a divisor of hidden_size ", read.layer.hidden_size,
                    "; got ", read.layer.attention.heads);
    }
    return;
  }
  read.query = config.Text({"query"});
  read.key = config.Text({"key"});
  read.value = config.Text({"value"});
  if (read.value == read.query && read.value != read.key) {
    config.Refuse("value: expected the same name as key or a different name from query; got ",
                  Quoted(read.value));
  }
}

void CheckSharing(const AttentionModule& read, Problems& problems) {
  if (!read.kind.collaborates()) return;
  if (!read.has_input_projection() || read.query == read.key || read.key == read.value ||
      absl::StrContains(read.query, kHead) || absl::StrContains(read.key, kHead)) {
    problems.Add("mixing: requires a query and a key that all heads share, and a separate value");
  }
}

absl::StatusOr<AttentionModule> ReadModule(const std::string& path, const Json& json) {
  Problems problems(path);
  ConfigReader config(json, problems);
  AttentionModule read;
  read.layer.attention.heads = config.Integer({"num_heads"}, kHiddenSizeRange);
  ReadInputs(config, read);
  read.output = config.Text({"output"}, "");
  read.kind = ReadAttentionKind(config, read.layer.attention);
  CheckSharing(read, problems);
  if (read.has_input_projection() || !read.output.empty()) {
    read.transposed = config.Choice<bool>({"weight_layout"}, kLayouts);
    read.file = config.Text({"file"});
    CheckFileName(read.file, problems);
  }
  if (absl::StrContains(read.output, kHead)) {
    problems.Add("output: expected one linear layer for all heads; got ", Quoted(read.output));
  }
  config.AllowOnly({"module"});
  RETURN_IF_ERROR(problems.ToStatus());
  return read;
}

// The tensors of a linear layer: one for each head, or one for all heads.
struct Linear {
  std::vector<TensorPart> weights, biases;
  // The numbers of outputs of all heads and of inputs, by the first tensor; 0 if that is not a
  // matrix.
  int64_t outputs = 0, inputs = 0;
};

Linear FindLinear(const AttentionModule& module, const std::string& what,
                  const WeightBinder& binder) {
  const std::string& name = module.name(what);
  const auto of_head = [&](int64_t head) {
    return absl::StrReplaceAll(name, {{kHead, absl::StrCat(head)}});
  };
  const int64_t heads = absl::StrContains(name, kHead) ? module.layer.attention.heads : 1;
  const char* suffix = binder.Find(of_head(0) + ".weight") != nullptr ? ".weight" : "";
  Linear linear;
  for (int64_t head = 0; head < heads; ++head) {
    linear.weights.push_back({.name = of_head(head) + suffix, .transposed = module.transposed});
    linear.biases.push_back({of_head(head) + ".bias"});
  }
  if (const FileTensor* first = binder.FindMatrix(of_head(0) + suffix)) {
    linear.outputs = first->shape[module.transposed ? 1 : 0] * heads;
    linear.inputs = first->shape[module.transposed ? 0 : 1];
  }
  return linear;
}

// Returns the number of outputs. If it is unknown, adds a problem and returns 0.
int64_t CountOutputs(const AttentionModule& module, const std::string& what, WeightBinder& binder) {
  const Linear linear = FindLinear(module, what, binder);
  if (linear.outputs == 0) binder.RefuseTensor(linear.weights.front().name, "a matrix");
  return linear.outputs;
}

// Returns the width of one head. If the outputs cannot be divided among the heads, adds a problem
// and returns 0.
int64_t HeadWidth(const AttentionModule& module, const std::string& what, WeightBinder& binder) {
  const int64_t outputs = CountOutputs(module, what, binder);
  if (outputs % module.layer.attention.heads == 0 && outputs <= kHiddenSizeRange.highest) {
    return outputs / module.layer.attention.heads;
  }
  binder.Refuse(what, ": expected a multiple of num_heads ", module.layer.attention.heads,
                " up to ", kHiddenSizeRange.highest, " outputs; got ", outputs);
  return 0;
}

// Returns the width of the rows that a projection takes, or 0 if its first tensor is not a matrix:
// that problem is added when the tensor is bound.
int64_t InputWidth(const AttentionModule& module, const std::string& what, WeightBinder& binder) {
  const int64_t width = FindLinear(module, what, binder).inputs;
  if (width > kHiddenSizeRange.highest) {
    binder.Refuse(what, ": expected up to ", kHiddenSizeRange.highest, " inputs; got ", width);
  }
  return width;
}

// Returns the width of the queries that a head multiplies by its keys.
int64_t QueryWidth(const AttentionModule& module, WeightBinder& binder) {
  if (!module.kind.collaborates()) return HeadWidth(module, "query", binder);
  return CollaborativeWidth(module.kind, module.layer.attention.heads,
                            CountOutputs(module, "query", binder), "query", binder);
}

LayerShape DescribeLayer(const AttentionModule& module, WeightBinder& binder) {
  LayerShape layer = module.layer;
  layer.norms.placement = NormPlacement::kNone;
  layer.attention.has_output_projection = !module.output.empty();
  layer.attention.has_input_projection = module.has_input_projection();
  if (layer.attention.has_input_projection) {
    layer.hidden_size = InputWidth(module, "query", binder);
    layer.attention.key_width = QueryWidth(module, binder);
    layer.attention.value_width = HeadWidth(module, "value", binder);
    layer.attention.key_input_width = InputWidth(module, "key", binder);
    layer.attention.value_input_width = InputWidth(module, "value", binder);
  } else {
    layer.attention.key_width = layer.attention.value_width =
        layer.hidden_size / layer.attention.heads;
  }
  layer.attention.keys_are_queries = module.key == module.query;
  layer.attention.values_are_keys = module.value == module.key;
  if (layer.attention.has_output_projection) {
    layer.attention.output_width = CountOutputs(module, "output", binder);
    if (layer.attention.output_width > kHiddenSizeRange.highest) {
      binder.Refuse("output: expected up to ", kHiddenSizeRange.highest, " outputs; got ",
                    layer.attention.output_width);
    }
  }
  DescribeAttentionKind(module.kind, layer, binder);
  return layer;
}

void BindAll(const AttentionModule& module, const ModelDescription& description,
             WeightBinder& binder) {
  for (const WeightSpec& spec : ListWeightsInFile(module.kind, description)) {
    if (BindAttentionKind(module.kind, spec, binder)) continue;
    const std::vector<std::string> parts = absl::StrSplit(spec.name, '.');  // layer, 0, what, kind
    const Linear linear = FindLinear(module, parts[2], binder);
    binder.BindStacked(spec, parts[3] == "bias" ? linear.biases : linear.weights);
  }
  for (const std::string& name : binder.Unbound()) {
    binder.Refuse(
        binder.Show(name),
        ": unexpected; the module has only the tensors of query, key, value and output",
        module.kind.score.empty() ? "" : " and score",
        module.kind.mixing.empty() && module.kind.key_mixing.empty() ? "" : " and mixing");
  }
}

}  // namespace

absl::Status OpenAttentionModule(const std::string& folder, const Json& json,
                                 const CheckpointOptions& options, Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const AttentionModule module,
                   ReadModule(absl::StrCat(folder, "/", kTorchDescriptionFile), json));
  WeightBinder binder(folder);
  if (!module.file.empty()) {
    RETURN_IF_ERROR(binder.AddFiles("", OpenWeightFile(folder, module.file, options)));
  }
  ModelDescription description;
  description.family = "attention";
  description.layers = 1;
  description.layer = DescribeLayer(module, binder);
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  BindAll(module, description, binder);
  checkpoint.description = std::move(description);
  RETURN_IF_ERROR(binder.Finish(options, checkpoint));
  checkpoint.weights =
      WithAttentionKind(module.kind, checkpoint.description, std::move(checkpoint.weights));
  return absl::OkStatus();
}

}  // namespace attendant
