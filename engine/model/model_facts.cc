#include "engine/model/model_facts.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/model/check_description.h"
#include "engine/model/layer_parts.h"
#include "engine/model/load_plan.h"

namespace attendant {
namespace {

WeightForm FormOf(const ModelPart& part, const WeightSpec& weight) {
  switch (part.kind) {
    case PartKind::kLinear:
      return weight.shape.size() > 1 ? WeightForm::kLinear : WeightForm::kBias;
    case PartKind::kScale:
      return WeightForm::kScale;
    case PartKind::kNorm:
      return WeightForm::kNorm;
    default:
      return WeightForm::kTable;
  }
}

using Costs = std::vector<StageCost>;

// Returns the cost of the stage. Appends it if it is new.
StageCost& CostOf(const std::string& stage, Costs& costs) {
  const auto at =
      absl::c_find_if(costs, [&](const StageCost& cost) { return cost.stage == stage; });
  if (at != costs.end()) return *at;
  costs.emplace_back().stage = stage;
  return costs.back();
}

// Adds `flops` for each pair of a query and a key in layers of this shape.
void AddPairs(const LayerShape& shape, int64_t flops, StageCost& cost) {
  if (shape.attention.kind == AttentionKind::kLinformer) {
    cost.per_token += flops * shape.attention.linformer.keys;
  } else if (shape.attention.window == 0) {
    // A causal query sees its own key and, on average, half of the others.
    cost.per_pair += shape.attention.causal ? flops / 2 : flops;
    cost.per_token += shape.attention.causal ? flops / 2 : 0;
  } else {
    const AttentionPattern& pattern = shape.attention.pattern;
    const auto globals = static_cast<int64_t>(pattern.listed.globals().size());
    const auto pairs = static_cast<int64_t>(pattern.listed.pairs().size());
    const int64_t seen = (shape.attention.causal ? 1 : 2) * shape.attention.window + 1 +
                         pattern.first_global + pattern.last_global + globals;
    cost.per_token += flops * seen * pattern.block;
    cost.per_sequence += flops * pairs * pattern.block * pattern.block;
  }
}

// Adds an upper bound on the cost of scoring each query and key against relative positions.
void AddDistances(const LayerShape& shape, int64_t times, Costs& costs) {
  const RelativePositionShape& relative = shape.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled) return;
  const int64_t products = (relative.scores_queries ? 1 : 0) + (relative.scores_keys ? 1 : 0);
  CostOf("attention.distances", costs).per_token +=
      2 * times * products * relative.position_rows() * shape.key_columns();
}

// Adds the cost of attention between its input and output projections.
void AddAttention(const LayerShape& shape, int64_t times, Costs& costs) {
  if (IsLinear(shape.attention.kind)) {
    const int64_t state = shape.attention.key_width * shape.attention.value_width;
    CostOf("attention.state", costs).per_token += 2 * 2 * times * shape.attention.heads * state;
    return;
  }
  AddPairs(shape, 2 * times * shape.attention.heads * shape.attention.key_width,
           CostOf("attention.scores", costs));
  if (shape.attention.linformer.keys > 0) {
    CostOf("attention.mixing", costs).per_token +=
        2 * times * shape.attention.heads *
        (shape.attention.key_width + shape.attention.value_width) * shape.attention.linformer.keys;
  }
  AddDistances(shape, times, costs);
  AddPairs(shape, 2 * times * shape.context_width(), CostOf("attention.context", costs));
}

void AddProducts(const ModelPart& part, int64_t times, Costs& costs) {
  const int64_t elements = (part.out * part.in * part.groups).value();
  if (part.stage.empty() || elements == 0) return;
  StageCost& cost = CostOf(part.stage, costs);
  (part.per_sequence ? cost.per_sequence : cost.per_token) += 2 * times * elements;
}

// Attention follows the last stage that projects its inputs.
void AddLayers(const LayerShape& shape, int64_t times, Costs& costs) {
  const char* inputs = shape.needs_cross_kv() ? "attention.value" : "attention.qkv";
  for (const ModelPart& part : ListParts(shape)) {
    AddProducts(part, times, costs);
    if (part.stage == inputs && part.first_row.value() == 0) AddAttention(shape, times, costs);
  }
}

// Returns the part of the layer that includes a stage.
StageCost& PartOf(const std::string& stage, LayerCost& layer) {
  static constexpr const char* kBetweenProducts[] = {"attention.scores", "attention.context",
                                                     "attention.state", "attention.mixing",
                                                     "attention.distances"};
  if (stage == "attention.output") return layer.output;
  if (absl::c_linear_search(kBetweenProducts, stage)) return layer.attention;
  return absl::StartsWith(stage, "attention.") ? layer.inputs : layer.others;
}

}  // namespace

std::vector<WeightUse> ListWeightUses(const ModelDescription& description) {
  std::vector<WeightUse> uses;
  for (const ModelPart& part : ListParts(description)) {
    for (WeightSpec& weight : WeightsOf(part)) {
      const WeightForm form = FormOf(part, weight);
      uses.push_back({std::move(weight), form, part.linear, part.first_row.value(), part.type});
    }
  }
  return uses;
}

std::vector<StageCost> ListStageCosts(const ModelDescription& description) {
  std::vector<int64_t> layers_of_set(description.weight_sets());
  for (int64_t i = 0; i < description.layers; ++i) ++layers_of_set[description.weight_set(i)];
  Costs costs;
  for (int64_t i = 0; i < description.weight_sets(); ++i) {
    const LayerShape& shape = description.layer_shape(i);
    if (!shape.attention.has_input_projection) AddAttention(shape, layers_of_set[i], costs);
  }
  for (const ModelPart& part : ListPartsBefore(description)) AddProducts(part, 1, costs);
  for (int64_t i = 0; i < description.weight_sets(); ++i) {
    AddLayers(description.layer_shape(i), layers_of_set[i], costs);
  }
  for (const ModelPart& part : ListPartsAfter(description)) AddProducts(part, 1, costs);
  if (description.pooling && description.pooling->attends()) {
    CostOf("pooling.attention", costs).per_token +=
        2 * 2 * description.layer.attention.heads * description.layer.hidden_size;
  }
  return costs;
}

LayerCost CostOfLayer(const ModelDescription& description, int64_t layer) {
  const LayerShape& shape = description.layer_at(layer);
  Costs costs;
  if (!shape.attention.has_input_projection) AddAttention(shape, 1, costs);
  AddLayers(shape, 1, costs);
  LayerCost parts;
  for (const StageCost& cost : costs) {
    StageCost& part = PartOf(cost.stage, parts);
    part.per_token += cost.per_token;
    part.per_pair += cost.per_pair;
    part.per_sequence += cost.per_sequence;
  }
  return parts;
}

absl::StatusOr<int64_t> PredictWeightBytes(const ModelDescription& description,
                                           const ComputeMode& mode) {
  RETURN_IF_ERROR(CheckDescription(description));
  return PackedBytes(description, mode).value();
}

std::string WhyNotInChunks(const ModelDescription& description) {
  const LayerShape& layer = description.layer;
  if (layer.attention.kind != AttentionKind::kCausalLinear) {
    return absl::StrCat("its attention is ", Name(layer.attention.kind), ", not causal_linear");
  }
  if (layer.relative_positions.kind != RelativePositions::kNone) {
    return absl::StrCat("its ", Name(layer.relative_positions.kind),
                        " positions depend on the whole sequence");
  }
  if (layer.extras.convolution.taps > 0) return "its convolutions read neighboring tokens";
  if (description.embeddings && description.embeddings->has_neighbours) {
    return "its embeddings read neighboring tokens";
  }
  if (description.embeddings && description.embeddings->mask_id >= 0) {
    return "its embeddings count the mask tokens of the whole sequence";
  }
  if (description.patch_embedding && (description.patch_embedding->prefix_tokens() > 0 ||
                                      description.patch_embedding->needs_every)) {
    return "it adds prefix tokens or grid positions to the whole sequence";
  }
  return "";
}

absl::Status CheckTakesCrossKv(const LayerShape& layer) {
  if (layer.takes_cross_kv()) return absl::OkStatus();
  std::string why;
  if (layer.relative_positions.kind != RelativePositions::kNone) {
    why = absl::StrCat("its ", Name(layer.relative_positions.kind),
                       " positions relate tokens of one sequence");
  } else if (layer.attention.causal) {
    why = "its queries attend only to earlier tokens of their own sequence";
  } else if (layer.attention.window > 0) {
    why = absl::StrCat("its attention window of ", layer.attention.window,
                       " surrounds the query in its own sequence");
  } else if (layer.extras.bottleneck.width > 0) {
    why = "it attends inside a bottleneck";
  } else {
    why = absl::StrCat("its ", Name(layer.attention.kind),
                       " attention depends on positions in one sequence");
  }
  return absl::InvalidArgumentError(absl::StrCat("memory: not supported by this layer: ", why));
}

int64_t LayerStateSize(const LayerShape& layer) {
  return layer.attention.heads *
         LinearStateSize(layer.attention.key_width, layer.attention.value_width);
}

}  // namespace attendant
