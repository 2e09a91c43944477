#include "engine/checkpoint/attention_module.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/bounds.h"
#include "engine/checkpoint/collaborative_heads.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/problems.h"
#include "engine/checkpoint/torch_modules.h"
#include "engine/checkpoint/weight_binder.h"
#include "engine/checkpoint/weight_files.h"

namespace attendant {
namespace {

constexpr char kHead[] = "{head}";
constexpr float kHighestScoreScale = 1e6f;
constexpr const char* kInputs[] = {"query", "key", "value"};

constexpr Named<AttentionKind> kKinds[] = {{"softmax", AttentionKind::kSoftmax},
                                           {"additive", AttentionKind::kAdditive},
                                           {"linear", AttentionKind::kLinear},
                                           {"causal_linear", AttentionKind::kCausalLinear},
                                           {"linformer", AttentionKind::kLinformer}};

constexpr Named<bool> kLayouts[] = {{"out_in", false}, {"in_out", true}};

struct AttentionModule {
  std::string file;  // empty: none
  int64_t num_heads = 0;
  int64_t hidden_size = 0;  // given only without input projections
  bool transposed = false;
  std::optional<float> score_scale;
  AttentionKind attention = AttentionKind::kSoftmax;
  int64_t window = 0;
  AttentionPattern pattern;
  std::string query, key, value, output;  // empty: none
  std::string score;                      // of additive attention
  std::string key_mixing, value_mixing;   // of a Linformer
  // Of collaborative heads: factors [H, width] on queries that all heads share, as they do keys;
  // and what keys say to a head whatever the query, [H, E], or empty: nothing.
  std::string mixing, content_bias;

  bool has_input_projection() const { return !query.empty(); }
  const std::string& name(const std::string& what) const {
    if (what == "query") return query;
    if (what == "key") return key;
    if (what == "value") return value;
    if (what == "score") return score;
    if (what == "key_mixing") return key_mixing;
    if (what == "value_mixing") return value_mixing;
    if (what == "mixing") return mixing;
    return what == "content_bias" ? content_bias : output;
  }
};

void ReadInputs(ConfigReader& config, Problems& problems, AttentionModule& read) {
  int given = 0;
  for (const char* input : kInputs) given += config.Has({input});
  if (given == 0) {
    read.hidden_size = config.Integer({"hidden_size"}, kHiddenSizeRange);
    if (problems.empty() && read.hidden_size % read.num_heads != 0) {
      problems.Add(absl::StrCat("num_heads: expected a divisor of hidden_size ", read.hidden_size,
                                ", found ", read.num_heads));
    }
    return;
  }
  read.query = config.Text({"query"});
  read.key = config.Text({"key"});
  read.value = config.Text({"value"});
  if (read.value == read.query && read.value != read.key) {
    problems.Add(
        absl::StrCat("value: expected a name of its own or that of key, found that of "
                     "query, ",
                     Quoted(read.value)));
  }
}

// What few kinds of attention have, and their keys.
Keys ReadKind(ConfigReader& config, Problems& problems, AttentionModule& read) {
  Keys keys = {"attention"};
  read.attention = config.Choice<AttentionKind>({"attention"}, kKinds, AttentionKind::kSoftmax);
  if (ScoresPairs(read.attention) && config.Has({"window"})) {
    keys.insert(keys.end(), {"window", "window_block", "first_global", "last_global"});
    read.window = config.Integer({"window"}, kPositionRange);
    read.pattern.block = config.Integer({"window_block"}, kPositionRange, 1);
    read.pattern.first_global = config.Integer({"first_global"}, {0, kPositionRange.highest}, 0);
    read.pattern.last_global = config.Integer({"last_global"}, {0, kPositionRange.highest}, 0);
  }
  if (read.attention == AttentionKind::kAdditive) {
    read.score = config.Text({"score"});
    keys.push_back("score");
  }
  if (read.attention == AttentionKind::kLinformer) {
    read.key_mixing = config.Text({"key_mixing"});
    read.value_mixing = config.Text({"value_mixing"});
    keys.insert(keys.end(), {"key_mixing", "value_mixing"});
  }
  if (read.attention != AttentionKind::kSoftmax || !config.Has({"mixing"})) return keys;
  keys.insert(keys.end(), {"mixing", "content_bias"});
  read.mixing = config.Text({"mixing"});
  read.content_bias = config.Text({"content_bias"}, "");
  if (!read.has_input_projection() || read.query == read.key || read.key == read.value ||
      absl::StrContains(read.query, kHead) || absl::StrContains(read.key, kHead)) {
    problems.Add(
        "mixing: expected a query and a key that all heads share, and a value of its own, beside "
        "it");
  }
  return keys;
}

absl::StatusOr<AttentionModule> ReadModule(const std::string& path, const Json& json) {
  Problems problems(path);
  ConfigReader config(json, problems);
  AttentionModule read;
  read.num_heads = config.Integer({"num_heads"}, kHiddenSizeRange);
  ReadInputs(config, problems, read);
  read.output = config.Text({"output"}, "");
  if (config.Has({"score_scale"})) {
    read.score_scale = config.Number({"score_scale"}, kHighestScoreScale);
  }
  Keys keys = ReadKind(config, problems, read);
  keys.insert(keys.end(),
              {"module", "num_heads", "query", "key", "value", "output", "score_scale"});
  if (!read.has_input_projection()) keys.push_back("hidden_size");
  if (read.has_input_projection() || !read.output.empty()) {
    read.transposed = config.Choice<bool>({"weight_layout"}, kLayouts);
    read.file = config.Text({"file"});
    keys.insert(keys.end(), {"weight_layout", "file"});
    if (problems.empty() && !IsPlainName(read.file)) {
      problems.Add(absl::StrCat("file: expected the plain name of a file in this folder, found ",
                                Quoted(read.file)));
    }
  }
  if (absl::StrContains(read.output, kHead)) {
    problems.Add(absl::StrCat("output: expected one linear layer for all heads, found ",
                              Quoted(read.output)));
  }
  config.AllowOnly(keys);
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  return read;
}

// The tensors of a linear layer, one for each head or one for all.
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
      parts.push_back({WeightName(head), {}, transposed_});
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

  // By the first tensor; 0 if that is no matrix.
  int64_t Inputs(const WeightBinder& binder) const {
    const FileTensor* tensor = binder.Find(WeightName(0));
    const bool is_matrix = tensor != nullptr && tensor->shape.size() == 2;
    return is_matrix ? tensor->shape[transposed_ ? 0 : 1] : 0;
  }

  // Outputs and inputs, by the first tensor; {0, 0} and a problem if that is no matrix.
  std::pair<int64_t, int64_t> Sizes(WeightBinder& binder) const {
    const std::string name = WeightName(0);
    const FileTensor* tensor = binder.Find(name);
    if (tensor == nullptr || tensor->shape.size() != 2 || tensor->shape[0] < 1 ||
        tensor->shape[1] < 1) {
      binder.problems().Add(absl::StrCat(
          tensor == nullptr ? absl::StrCat("tensor ", Quoted(name)) : binder.Show(name),
          ": expected a matrix", tensor == nullptr ? ", found none" : ""));
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

// The width of one head; 0 and a problem if the outputs cannot be shared out.
int64_t HeadWidth(const AttentionModule& module, const std::string& what, WeightBinder& binder) {
  const int64_t outputs = Linear(module, what, binder).Sizes(binder).first;
  if (outputs % module.num_heads == 0 && outputs <= kHiddenSizeRange.highest) {
    return outputs / module.num_heads;
  }
  binder.problems().Add(absl::StrCat(what, ": expected a multiple of num_heads ", module.num_heads,
                                     " up to ", kHiddenSizeRange.highest, " outputs, found ",
                                     outputs));
  return 0;
}

// Of the rows that a projection takes; 0 if its first tensor is no matrix, which binding it says.
int64_t InputWidth(const AttentionModule& module, const std::string& what, WeightBinder& binder) {
  const int64_t width = Linear(module, what, binder).Inputs(binder);
  if (width > kHiddenSizeRange.highest) {
    binder.problems().Add(absl::StrCat(what, ": expected up to ", kHiddenSizeRange.highest,
                                       " inputs, found ", width));
  }
  return width;
}

// Columns that every head has of the shared queries and keys, and one for what keys say alone.
int64_t CollaborativeWidth(const AttentionModule& module, WeightBinder& binder) {
  const int64_t shared = Linear(module, "query", binder).Sizes(binder).first;
  const int64_t width = shared + (module.content_bias.empty() ? 0 : 1);
  if (width <= kHiddenSizeRange.highest / module.num_heads) return width;
  binder.problems().Add(absl::StrCat("query: expected up to ",
                                     kHiddenSizeRange.highest / module.num_heads, " outputs for ",
                                     module.num_heads, " heads that share them, found ", shared));
  return 0;
}

// What keys and values of how many places are mixed into.
void DescribeMixing(const AttentionModule& module, LayerShape& layer, WeightBinder& binder) {
  if (module.attention != AttentionKind::kLinformer) return;
  const FileTensor* tensor = binder.Find(module.key_mixing);
  if (tensor == nullptr || tensor->shape.size() != 2 ||
      std::min(tensor->shape[0], tensor->shape[1]) < 1 ||
      std::max(tensor->shape[0], tensor->shape[1]) > kPositionRange.highest) {
    binder.problems().Add(absl::StrCat(
        "tensor ", Quoted(module.key_mixing), ": expected a matrix of up to ",
        kPositionRange.highest, " rows and columns", tensor == nullptr ? ", found none" : ""));
    return;
  }
  layer.mixed_keys = tensor->shape[0];
  layer.mixed_places = tensor->shape[1];
}

// 1 / sqrt of the width of a head, which collaborative heads have their share of; 1 where there is
// no dot product or no softmax.
float DefaultScale(const AttentionModule& module, const LayerShape& layer) {
  if (module.attention != AttentionKind::kSoftmax &&
      module.attention != AttentionKind::kLinformer) {
    return 1;
  }
  if (module.mixing.empty()) return 1 / std::sqrt(static_cast<float>(layer.key_width));
  const int64_t shared = layer.key_width - (module.content_bias.empty() ? 0 : 1);
  return std::sqrt(static_cast<float>(module.num_heads) / static_cast<float>(shared));
}

LayerShape DescribeLayer(const AttentionModule& module, WeightBinder& binder) {
  LayerShape layer;
  layer.heads = module.num_heads;
  layer.norm_placement = NormPlacement::kNone;
  layer.has_output_projection = !module.output.empty();
  layer.has_input_projection = module.has_input_projection();
  if (layer.has_input_projection) {
    layer.hidden_size = InputWidth(module, "query", binder);
    layer.key_width = module.mixing.empty() ? HeadWidth(module, "query", binder)
                                            : CollaborativeWidth(module, binder);
    layer.value_width = HeadWidth(module, "value", binder);
  } else {
    layer.hidden_size = module.hidden_size;
    layer.key_width = layer.value_width = module.hidden_size / module.num_heads;
  }
  layer.keys_are_queries = module.key == module.query;
  layer.values_are_keys = module.value == module.key;
  if (layer.has_input_projection) {
    layer.key_input_width = InputWidth(module, "key", binder);
    layer.value_input_width = InputWidth(module, "value", binder);
  }
  if (layer.has_output_projection) {
    layer.output_width = Linear(module, "output", binder).Sizes(binder).first;
    if (layer.output_width > kHiddenSizeRange.highest) {
      binder.problems().Add(absl::StrCat("output: expected up to ", kHiddenSizeRange.highest,
                                         " outputs, found ", layer.output_width));
    }
  }
  layer.attention = module.attention;
  layer.window = module.window;
  layer.pattern = module.pattern;
  DescribeMixing(module, layer, binder);
  layer.score_scale = module.score_scale.value_or(DefaultScale(module, layer));
  return layer;
}

// What the file has of the model's weights: collaborative heads share queries and keys.
std::vector<WeightSpec> WeightsInFile(const AttentionModule& module,
                                      const ModelDescription& description) {
  std::vector<WeightSpec> weights = ListWeights(description);
  if (module.mixing.empty()) return weights;
  const LayerShape& layer = description.layer;
  const int64_t shared = layer.key_width - (module.content_bias.empty() ? 0 : 1);
  std::erase_if(weights, [](const WeightSpec& spec) {
    return absl::StrContains(spec.name, ".key.bias") || absl::StrContains(spec.name, ".query.bias");
  });
  for (WeightSpec& spec : weights) {
    if (absl::StrContains(spec.name, ".query.") || absl::StrContains(spec.name, ".key.")) {
      spec.shape[0] = shared;
    }
  }
  weights.push_back({"layer.0.mixing", {layer.heads, shared}});
  if (!module.content_bias.empty()) {
    weights.push_back({"layer.0.content_bias", {layer.heads, layer.hidden_size}});
  }
  return weights;
}

void BindAll(const AttentionModule& module, const ModelDescription& description,
             WeightBinder& binder) {
  for (const WeightSpec& spec : WeightsInFile(module, description)) {
    const std::vector<std::string> parts = absl::StrSplit(spec.name, '.');  // layer, 0, what, kind
    if (parts.size() < 4) {
      const TensorPart place = {module.name(parts[2])};
      binder.Bind(spec, {place});
      continue;
    }
    const Linear linear(module, parts[2], binder);
    binder.BindStacked(spec, parts[3] == "bias" ? linear.Biases() : linear.Weights());
  }
  for (const std::string& name : binder.Unbound()) {
    binder.problems().Add(absl::StrCat(
        binder.Show(name), ": expected no tensor but those of query, key, value and output",
        module.score.empty() ? "" : " and score",
        module.mixing.empty() && module.key_mixing.empty() ? "" : " and mixing"));
  }
}

}  // namespace

absl::Status OpenAttentionModule(const std::string& folder, const Json& json,
                                 const CheckpointOptions& options, Checkpoint& checkpoint) {
  const absl::StatusOr<AttentionModule> module =
      ReadModule(absl::StrCat(folder, "/", kTorchDescriptionFile), json);
  if (!module.ok()) return module.status();
  WeightBinder binder(folder);
  if (!module->file.empty()) {
    absl::StatusOr<WeightFiles> files = OpenWeightFile(folder, module->file, options);
    if (!files.ok()) return files.status();
    binder.AddFiles("", *std::move(files));
  }
  ModelDescription description;
  description.family = "attention";
  description.layers = 1;
  description.layer = DescribeLayer(*module, binder);
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  BindAll(*module, description, binder);
  checkpoint.description = std::move(description);
  absl::Status status = binder.Finish(options, checkpoint);
  if (status.ok() && !module->mixing.empty()) {
    checkpoint.weights = SplitCollaborativeHeads(
        checkpoint.description.layer, !module->content_bias.empty(), std::move(checkpoint.weights));
  }
  return status;
}

}  // namespace attendant
