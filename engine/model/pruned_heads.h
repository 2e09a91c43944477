// Models that do without some of their attention heads: Michel et al. 2019.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "engine/model/model_description.h"

namespace attendant {

// Whether a layer of the model does without some of its heads.
bool HasPrunedHeads(const ModelDescription& model);

// The model with all heads that its layers have been pruned of.
ModelDescription WithAllHeads(ModelDescription model);

// The layer, which has all of its heads, without those of these numbers, which ascend.
LayerShape WithoutHeads(LayerShape layer, absl::Span<const int64_t> pruned);

// Why layers of this shape cannot lose heads, "its keys …"; empty: they can.
std::string WhyNotPrunable(const LayerShape& layer);

}  // namespace attendant
