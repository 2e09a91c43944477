// The rules of CheckDescription (check_description.h) for heads that share keys and values, and for
// causal attention.
#pragma once

#include "absl/status/status.h"
#include "engine/model/model_description.h"

namespace attendant {

// INVALID_ARGUMENT if such heads or such a mask cannot be in a layer of this shape.
absl::Status CheckSharedHeads(const LayerShape& layer);

}  // namespace attendant
