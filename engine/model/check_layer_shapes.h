// The rules for the weight sets of a model and for what their shapes may differ in.
#pragma once

#include "absl/status/status.h"
#include "engine/model/model_description.h"

namespace attendant {

// INVALID_ARGUMENT unless the layer map names all weight sets, each has a shape or all have the
// common one, and each fits into that. The rules for a single shape are those of CheckDescription.
absl::Status CheckLayerShapes(const ModelDescription& model);

}  // namespace attendant
