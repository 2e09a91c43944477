// Validation of the weight sets in a model description, for CheckDescription (check_description.h).
#pragma once

#include "absl/status/status.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns INVALID_ARGUMENT unless the layer map names all weight sets, there are no shapes or one
// per weight set, and each shape fits into the common one. Does not check each shape by itself.
absl::Status CheckLayerShapes(const ModelDescription& model);

}  // namespace attendant
