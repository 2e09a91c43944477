#include "engine/model/model_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/shape.h"
#include "engine/model/check_description.h"
#include "engine/model/load_plan.h"

namespace attendant {
namespace {

// Linear layers that are not packed under their own name, and what scales go into.
struct Rule {
  absl::string_view name;
  const char* linear;
};

constexpr Rule kRules[] = {
    {"query", "qkv"},
    {"key", "qkv"},
    {"value", "qkv"},
    {"attention_scale", "output"},
    {"feed_forward_scale", "feed_forward_out"},
};

struct Stage {
  absl::string_view linear;
  const char* stage;
};

// Where a linear layer works, if its name does not say.
constexpr Stage kStages[] = {
    {"qkv", "attention.qkv"},
    {"query", "attention.query"},
    {"key", "attention.key"},
    {"value", "attention.value"},
    {"output", "attention.output"},
    {"feed_forward_gate", "feed_forward.gate"},
    {"feed_forward_in", "feed_forward.in"},
    {"feed_forward_out", "feed_forward.out"},
};

// "layer.12.key.weight" -> "layer.12.", "key" and "weight".
struct NameParts {
  explicit NameParts(absl::string_view name) {
    absl::string_view rest = name;
    if (absl::ConsumePrefix(&rest, "layer.")) {
      prefix = name.substr(0, name.size() - rest.size() + rest.find('.') + 1);
    }
    absl::string_view block = name.substr(prefix.size());
    if (absl::ConsumePrefix(&block, "before.")) {
      prefix = name.substr(0, name.size() - block.size() + block.find('.') + 1);
    }
    stem = name.substr(prefix.size());
    for (const char* ending : {".weight", ".bias"}) {
      if (absl::ConsumeSuffix(&stem, ending)) kind = ending + 1;
    }
  }

  absl::string_view prefix, stem, kind;
};

// Dense layers behind the encoder work on a row for each sequence, and are not packed.
bool IsOfHead(const NameParts& name) {
  return name.prefix.empty() && !absl::StartsWith(name.stem, "embeddings.") &&
         !absl::StartsWith(name.stem, "front.");
}

// What projects the table of distances does so while loading, and is not packed.
bool IsOfDistances(const NameParts& name) { return absl::StartsWith(name.stem, "position_"); }

WeightForm FormOf(const NameParts& name, const WeightSpec& weight) {
  if (absl::EndsWith(name.stem, "_scale")) return WeightForm::kScale;
  if (absl::EndsWith(name.stem, "norm")) return WeightForm::kNorm;
  if (name.kind.empty() || IsOfHead(name) || IsOfDistances(name)) return WeightForm::kTable;
  return weight.shape.size() > 1 ? WeightForm::kLinear : WeightForm::kBias;
}

std::string LinearOf(const NameParts& name, const LayerShape& layer) {
  for (const Rule& rule : kRules) {
    const bool stands_alone = layer.needs_cross_kv() && absl::string_view(rule.linear) == "qkv";
    if (rule.name == name.stem && !stands_alone) return absl::StrCat(name.prefix, rule.linear);
  }
  return absl::StrCat(name.prefix, name.stem);
}

// The stage that a linear layer is, without its layer's number.
std::string StageOf(absl::string_view linear) {
  const absl::string_view stem = linear.substr(NameParts(linear).prefix.size());
  for (const Stage& stage : kStages) {
    if (stage.linear == stem) return stage.stage;
  }
  return std::string(stem);
}

class CostList {
 public:
  // Of the stage, which comes last if it is new.
  StageCost& Of(const std::string& stage) {
    const auto at = std::find_if(costs_.begin(), costs_.end(),
                                 [&](const StageCost& cost) { return cost.stage == stage; });
    if (at != costs_.end()) return *at;
    costs_.emplace_back().stage = stage;
    return costs_.back();
  }

  std::vector<StageCost> Take() { return std::move(costs_); }

 private:
  std::vector<StageCost> costs_;
};

// What each pair of a query and a key costs in layers of this shape.
void AddPairs(const LayerShape& shape, int64_t flops, StageCost& cost) {
  if (shape.attention == AttentionKind::kLinformer) {
    cost.per_token += flops * shape.mixed_keys;
  } else if (shape.window == 0) {
    cost.per_pair += flops;
  } else {
    const AttentionPattern& pattern = shape.pattern;
    const auto globals = static_cast<int64_t>(pattern.listed.globals().size());
    const auto pairs = static_cast<int64_t>(pattern.listed.pairs().size());
    const int64_t seen =
        2 * shape.window + 1 + pattern.first_global + pattern.last_global + globals;
    cost.per_token += flops * seen * pattern.block;
    cost.per_sequence += flops * pairs * pattern.block * pattern.block;
  }
}

// What each query and each key costs against the rows of distances, at most.
void AddDistances(const LayerShape& shape, int64_t times, CostList& costs) {
  const RelativePositionShape& relative = shape.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled) return;
  const int64_t products = (relative.scores_queries ? 1 : 0) + (relative.scores_keys ? 1 : 0);
  costs.Of("attention.distances").per_token +=
      2 * times * products * relative.position_rows() * shape.heads * shape.key_width;
}

int64_t Elements(const WeightSpec& weight) { return ElementCount(weight.shape).value_or(0); }

}  // namespace

const char* Name(WeightForm form) {
  switch (form) {
    case WeightForm::kLinear:
      return "linear";
    case WeightForm::kBias:
      return "bias";
    case WeightForm::kScale:
      return "scale";
    case WeightForm::kNorm:
      return "norm";
    case WeightForm::kTable:
      return "table";
  }
  return "unknown";
}

std::vector<WeightUse> ListWeightUses(const ModelDescription& description) {
  std::vector<WeightUse> uses;
  int64_t rows = 0;  // of the linear layer so far
  std::string filled;
  for (WeightSpec& weight : ListWeights(description)) {
    const NameParts name(weight.name);
    WeightUse use;
    use.form = FormOf(name, weight);
    if (use.form != WeightForm::kNorm && use.form != WeightForm::kTable)
      use.linear = LinearOf(name, description.layer);
    if (use.form == WeightForm::kLinear) {
      use.first_row = use.linear == filled ? rows : 0;
      rows = use.first_row + weight.shape[0];
      filled = use.linear;
    } else if (use.form == WeightForm::kBias) {  // comes right after its rows, if there are any
      use.first_row = use.linear == filled ? rows - weight.shape[0] : 0;
    }
    use.weight = std::move(weight);
    uses.push_back(std::move(use));
  }
  return uses;
}

std::vector<StageCost> ListStageCosts(const ModelDescription& description) {
  std::vector<int64_t> layers_of_set(description.weight_sets());
  for (int64_t i = 0; i < description.layers; ++i) ++layers_of_set[description.weight_set(i)];
  const LayerShape& layer = description.layer;
  CostList costs;
  const auto add_attention = [&](int64_t set, int64_t times) {
    const LayerShape shape = description.layer_shape(set);
    if (IsLinear(shape.attention)) {
      const int64_t state = shape.key_width * shape.value_width;
      costs.Of("attention.state").per_token += 2 * 2 * times * shape.heads * state;
      return;
    }
    AddPairs(shape, 2 * times * shape.heads * shape.key_width, costs.Of("attention.scores"));
    if (shape.mixed_keys > 0) {
      costs.Of("attention.mixing").per_token +=
          2 * times * shape.heads * (shape.key_width + shape.value_width) * shape.mixed_keys;
    }
    AddDistances(shape, times, costs);
    AddPairs(shape, 2 * times * shape.context_width(), costs.Of("attention.context"));
  };
  if (!layer.has_input_projection) add_attention(0, description.layers);
  for (const WeightUse& use : ListWeightUses(description)) {
    const NameParts name(use.weight.name);
    if (use.form == WeightForm::kTable && IsOfHead(name) && name.kind == "weight") {
      costs.Of(std::string(name.stem)).per_sequence = 2 * Elements(use.weight);
    }
    if (use.form != WeightForm::kLinear) continue;
    absl::string_view set = use.linear;
    int64_t times = 1, index = 0;
    if (absl::ConsumePrefix(&set, "layer.") &&
        absl::SimpleAtoi(set.substr(0, set.find('.')), &index)) {
      times = layers_of_set[index];
    }
    const std::string stage = StageOf(use.linear);
    costs.Of(stage).per_token += 2 * times * Elements(use.weight);
    const char* inputs = layer.needs_cross_kv() ? "attention.value" : "attention.qkv";
    if (stage == inputs && use.first_row == 0) add_attention(index, times);
  }
  return costs.Take();
}

absl::StatusOr<int64_t> PredictWeightBytes(const ModelDescription& description,
                                           const ComputeMode& mode) {
  if (absl::Status status = CheckDescription(description); !status.ok()) return status;
  return PackedBytes(description, mode).value();
}

std::string WhyNotInParts(const ModelDescription& description) {
  const LayerShape& layer = description.layer;
  if (layer.attention != AttentionKind::kCausalLinear) {
    return absl::StrCat("its attention is ", Name(layer.attention),
                        ", which does not go token by token as causal_linear does");
  }
  if (layer.relative_positions.kind != RelativePositions::kNone) {
    return absl::StrCat("its ", Name(layer.relative_positions.kind),
                        " positions are of tokens in one sequence");
  }
  if (layer.convolution.taps > 0) return "its layers look at the tokens beside each";
  if (description.embeddings && description.embeddings->has_neighbours) {
    return "its embeddings look at the tokens beside each";
  }
  if (description.front && (description.front->own_rows() > 0 || description.front->needs_every)) {
    return "it puts rows or positions of its own onto whole sequences";
  }
  return "";
}

int64_t LayerStateSize(const LayerShape& layer) {
  return layer.heads * LinearStateSize(layer.key_width, layer.value_width);
}

}  // namespace attendant
