#include "engine/checkpoint/torch/attention_module.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/bounds.h"
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
  int64_t num_heads = 0;
  int64_t hidden_size = 0;  // only set without input projections
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
    read.hidden_size = config.Integer({"hidden_size"}, kHiddenSizeRange);
    if (config.problems().empty() && read.hidden_size % read.num_heads != 0) {
      config.Refuse("num_heads: expected a divisor of hidden_size ", read.hidden_size, "; got ",
                    read.num_heads);
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
  read.num_heads = config.Integer({"num_heads"}, kHiddenSizeRange);
  ReadInputs(config, read);
  read.output = config.Text({"output"}, "");
  Keys keys = {"module", "num_heads", "query", "key", "value", "output"};
  read.kind = ReadAttentionKind(config, keys);
  CheckSharing(read, problems);
  if (!read.has_input_projection()) keys.push_back("hidden_size");
  if (read.has_input_projection() || !read.output.empty()) {
    read.transposed = config.Choice<bool>({"weight_layout"}, kLayouts);
    read.file = config.Text({"file"});
    keys.insert(keys.end(), {"weight_layout", "file"});
    if (problems.empty() && !IsPlainName(read.file)) {
      problems.Add("file: expected the plain name of a file in this directory; got ",
                   Quoted(read.file));
    }
  }
  if (absl::StrContains(read.output, kHead)) {
    problems.Add("output: expected one linear layer for all heads; got ", Quoted(read.output));
  }
  config.AllowOnly(keys);
  RETURN_IF_ERROR(problems.ToStatus());
  return read;
}

// The tensors of a linear layer: one for each head, or one for all heads.
class Linear {
 public:
  Linear(const AttentionModule& module, const std::string& what, const WeightBinder& binder)
      : name_(module.name(what)),
        heads_(absl::StrContains(name_, kHead) ? module.num_heads : 1),
        transposed_(module.transposed),
        has_suffix_(binder.Find(absl::StrCat(HeadName(0), ".weight")) != nullptr) {}

  std::vector<TensorPart> Weights() const {
    std::vector<TensorPart> parts;
    for (int64_t head = 0; head < heads_; ++head) {
      parts.push_back({.name = WeightName(head), .transposed = transposed_});
    }
    return parts;
  }

  std::vector<TensorPart> Biases() const {
    std::vector<TensorPart> parts;
    for (int64_t head = 0; head < heads_; ++head) {
      parts.push_back({absl::StrCat(HeadName(head), ".bias")});
    }
    return parts;
  }

  // The number of inputs by the first tensor, or 0 if that is not a matrix.
  int64_t Inputs(const WeightBinder& binder) const {
    const FileTensor* tensor = binder.FindMatrix(WeightName(0));
    return tensor == nullptr ? 0 : tensor->shape[transposed_ ? 0 : 1];
  }

  // The numbers of outputs of all heads and of inputs, by the first tensor. If that is not a
  // matrix, adds a problem and returns {0, 0}.
  std::pair<int64_t, int64_t> Sizes(WeightBinder& binder) const {
    const std::string name = WeightName(0);
    const FileTensor* tensor = binder.FindMatrix(name);
    if (tensor == nullptr) {
      binder.RefuseTensor(name, "a matrix");
      return {0, 0};
    }
    std::pair<int64_t, int64_t> sizes = {tensor->shape[0], tensor->shape[1]};
    if (transposed_) std::swap(sizes.first, sizes.second);
    return {sizes.first * heads_, sizes.second};
  }

 private:
  std::string HeadName(int64_t head) const {
    return absl::StrReplaceAll(name_, {{kHead, absl::StrCat(head)}});
  }

  std::string WeightName(int64_t head) const {
    return absl::StrCat(HeadName(head), has_suffix_ ? ".weight" : "");
  }

  std::string name_;
  int64_t heads_;
  bool transposed_;
  bool has_suffix_;
};

// Returns the width of one head. If the outputs cannot be divided among the heads, adds a problem
// and returns 0.
int64_t HeadWidth(const AttentionModule& module, const std::string& what, WeightBinder& binder) {
  const int64_t outputs = Linear(module, what, binder).Sizes(binder).first;
  if (outputs % module.num_heads == 0 && outputs <= kHiddenSizeRange.highest) {
    return outputs / module.num_heads;
  }
  binder.Refuse(what, ": expected a multiple of num_heads ", module.num_heads, " up to ",
                kHiddenSizeRange.highest, " outputs; got ", outputs);
  return 0;
}

// Returns the width of the rows that a projection takes, or 0 if its first tensor is not a matrix:
// that problem is added when the tensor is bound.
int64_t InputWidth(const AttentionModule& module, const std::string& what, WeightBinder& binder) {
  const int64_t width = Linear(module, what, binder).Inputs(binder);
  if (width > kHiddenSizeRange.highest) {
    binder.Refuse(what, ": expected up to ", kHiddenSizeRange.highest, " inputs; got ", width);
  }
  return width;
}

// Returns the width of the queries that a head multiplies by its keys.
int64_t QueryWidth(const AttentionModule& module, WeightBinder& binder) {
  if (!module.kind.collaborates()) return HeadWidth(module, "query", binder);
  const int64_t columns = Linear(module, "query", binder).Sizes(binder).first;
  return CollaborativeWidth(module.kind, module.num_heads, columns, "query", binder);
}

LayerShape DescribeLayer(const AttentionModule& module, WeightBinder& binder) {
  LayerShape layer;
  layer.attention.heads = module.num_heads;
  layer.norms.placement = NormPlacement::kNone;
  layer.attention.has_output_projection = !module.output.empty();
  layer.attention.has_input_projection = module.has_input_projection();
  if (layer.attention.has_input_projection) {
    layer.hidden_size = InputWidth(module, "query", binder);
    layer.attention.key_width = QueryWidth(module, binder);
    layer.attention.value_width = HeadWidth(module, "value", binder);
  } else {
    layer.hidden_size = module.hidden_size;
    layer.attention.key_width = layer.attention.value_width = module.hidden_size / module.num_heads;
  }
  layer.attention.keys_are_queries = module.key == module.query;
  layer.attention.values_are_keys = module.value == module.key;
  if (layer.attention.has_input_projection) {
    layer.attention.key_input_width = InputWidth(module, "key", binder);
    layer.attention.value_input_width = InputWidth(module, "value", binder);
  }
  if (layer.attention.has_output_projection) {
    layer.attention.output_width = Linear(module, "output", binder).Sizes(binder).first;
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
    const Linear linear(module, parts[2], binder);
    binder.BindStacked(spec, parts[3] == "bias" ? linear.Biases() : linear.Weights());
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
    ASSIGN_OR_RETURN(WeightFiles files, OpenWeightFile(folder, module.file, options));
    binder.AddFiles("", std::move(files));
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
      WithAttentionKind(module.kind, checkpoint.description.layer, std::move(checkpoint.weights));
  return absl::OkStatus();
}

}  // namespace attendant
