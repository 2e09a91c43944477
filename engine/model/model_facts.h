// Facts about a model that are known without loading it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The form in which a weight is kept once it is loaded.
enum class WeightForm {
  kLinear,  // rows of a linear layer, packed for matrix products in the compute type
  kBias,    // of a linear layer, float32
  kScale,   // multiplied into a linear layer and its bias
  kNorm,    // float32
  kTable,   // as it is, in WeightUse::type
};

// "linear", "bias", "scale", "norm", "table".
const char* Name(WeightForm form);

struct WeightUse {
  WeightSpec weight;
  WeightForm form = WeightForm::kTable;
  // The linear layer that the weight goes into, such as "layer.0.qkv" [H Dk + K (Dk + Dv), E];
  // empty for norms and tables.
  std::string linear;
  int64_t first_row = 0;  // there
  DataType type = DataType::kFloat32;  // of a table in memory
};

// Floating point operations of one stage, of all layers together; a product and the sum that it
// goes into are two. Matrix products only: norms, softmax and activations are left out.
struct StageCost {
  std::string stage;  // "attention.qkv", "attention.scores", "feed_forward.in", …
  // Times T; in windows at most. Of attention.key and attention.value, which a layer has that
  // needs cross_kv, times the rows of that.
  int64_t per_token = 0;
  int64_t per_pair = 0;  // times the pairs of a query and a key: of len^2 in self-attention
  // Times the sequences that are pooled, or reach over all listed pairs of blocks.
  int64_t per_sequence = 0;
};

// The operations of one layer, by its parts, none of which names a stage.
struct LayerCost {
  StageCost inputs;     // the products that make queries, keys and values
  StageCost attention;  // scores, and sums of values
  StageCost output;     // the product behind the attention
  StageCost others;     // feed-forward blocks, convolutions, bottlenecks
};

// All are of a description that Encoder::PredictLoadBytes does not refuse as INVALID_ARGUMENT.
// In the order of ListWeights.
std::vector<WeightUse> ListWeightUses(const ModelDescription& description);
// In the order in which they run; stages that the model does not have are left out.
std::vector<StageCost> ListStageCosts(const ModelDescription& description);
// The cost of one layer of the model.
LayerCost CostOfLayer(const ModelDescription& description, int64_t layer);

// Bytes of the packed weights at most, on a CPU that has the units for `mode`, whether or not this
// one has. INVALID_ARGUMENT as Encoder::PredictLoadBytes.
absl::StatusOr<int64_t> PredictWeightBytes(const ModelDescription& description,
                                           const ComputeMode& mode);

// Why a sequence cannot be sent through the layers in parts, one after the other, with the answers
// that it would get as a whole; empty: it can.
std::string WhyNotInChunks(const ModelDescription& description);

// INVALID_ARGUMENT, with the reason, if queries of the layer can only attend to their own sequence.
absl::Status CheckTakesCrossKv(const LayerShape& layer);

// Floats of what a part of a sequence leaves behind in one layer for the next part.
int64_t LayerStateSize(const LayerShape& layer);

}  // namespace attendant
