// Models that do without some of their attention heads: Michel et al. 2019.
#pragma once

#include <string>

#include "engine/model/model_description.h"

namespace attendant {

// Whether a layer of the model does without some of its heads.
bool HasPrunedHeads(const ModelDescription& model);

// The model with all heads that its layers have been pruned of; what every layer has of its own is
// said of each.
ModelDescription WithAllHeads(ModelDescription model);

// Why layers of this shape cannot lose heads, "its keys …"; empty: they can.
std::string WhyNotPrunable(const LayerShape& layer);

}  // namespace attendant
