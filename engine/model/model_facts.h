// Facts about a model that its description implies: weights, costs and supported features.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/compute_type.h"
#include "engine/base/names.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The form of a weight in memory.
enum class WeightForm {
  kLinear,  // rows of a linear layer, packed for matrix products in the compute type
  kBias,    // of a linear layer, float32
  kScale,   // multiplied into a linear layer and its bias
  kNorm,    // float32
  kTable,   // unpacked, in WeightUse::type
};

inline constexpr Named<WeightForm> kWeightFormNames[] = {{"linear", WeightForm::kLinear},
                                                         {"bias", WeightForm::kBias},
                                                         {"scale", WeightForm::kScale},
                                                         {"norm", WeightForm::kNorm},
                                                         {"table", WeightForm::kTable}};

constexpr const char* Name(WeightForm form) { return NameIn(kWeightFormNames, form); }

struct WeightUse {
  WeightSpec weight;
  WeightForm form = WeightForm::kTable;
  // The packed linear layer that contains the weight, such as "layer.0.qkv" [H Dk + K (Dk + Dv),
  // E], and its first row there. Empty for norms and tables.
  std::string linear;
  int64_t first_row = 0;
  DataType type = DataType::kFloat32;  // of a table in memory
};

// The floating point operations of one stage in all layers. A multiply-add is two. Counts only
// matrix products, not norms, softmax or activations.
struct StageCost {
  std::string stage;  // "attention.qkv", "attention.scores", "feed_forward.in", …
  // Times T; an upper bound for attention with a window. The stages attention.key and
  // attention.value, which only layers that need cross_kv have, are times its rows.
  int64_t per_token = 0;
  int64_t per_pair = 0;  // times the pairs of a query and a key, len^2 in self-attention
  // Times the sequences that are pooled, or that are long enough for all listed block pairs.
  int64_t per_sequence = 0;
};

// The cost of one layer. `stage` is empty in all of them.
struct LayerCost {
  StageCost inputs;     // the projections of queries, keys and values
  StageCost attention;  // scores, and weighted sums of values
  StageCost output;     // the output projection
  StageCost others;     // feed-forward blocks, convolutions, bottlenecks
};

// These functions require a description that passes CheckDescription.
// Returns the weights in the order of ListWeights.
std::vector<WeightUse> ListWeightUses(const ModelDescription& description);
// Returns the stages of the model in the order in which they run.
std::vector<StageCost> ListStageCosts(const ModelDescription& description);
// Returns the cost of one layer of the model.
LayerCost CostOfLayer(const ModelDescription& description, int64_t layer);

// Returns an upper bound on the bytes of the packed weights, on any CPU that supports `mode`.
// Returns INVALID_ARGUMENT for an invalid description.
absl::StatusOr<int64_t> PredictWeightBytes(const ModelDescription& description,
                                           const ComputeMode& mode);

// Returns why the model cannot compute a sequence chunk by chunk with the same results, or an empty
// string if it can.
std::string WhyNotInChunks(const ModelDescription& description);

// Returns INVALID_ARGUMENT, with the reason, if the layer does not support cross-attention.
absl::Status CheckTakesCrossKv(const LayerShape& layer);

// Returns the number of floats of the state that one chunk of a sequence passes to the next in one
// layer.
int64_t LayerStateSize(const LayerShape& layer);

}  // namespace attendant
