// Validation of model descriptions.
#pragma once

#include "absl/status/status.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns INVALID_ARGUMENT if a size is invalid, sizes overflow, or parts do not fit together.
absl::Status CheckDescription(const ModelDescription& model);

}  // namespace attendant
