// Pruning of attention heads: Michel et al. 2019.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "engine/model/model_description.h"

namespace attendant {

// Whether heads of any layer are pruned.
bool HasPrunedHeads(const ModelDescription& model);

// Returns the model with all heads restored.
ModelDescription WithAllHeads(ModelDescription model);

// Returns `layer`, which must have all heads, without the heads `pruned`, which are ascending.
LayerShape WithoutHeads(LayerShape layer, absl::Span<const int64_t> pruned);

// Returns why heads of such a layer cannot be pruned, such as "its heads share keys and values", or
// an empty string if they can.
std::string WhyNotPrunable(const LayerShape& layer);

}  // namespace attendant
