// Validation of the heads in a model description, for CheckDescription (check_description.h).
#pragma once

#include "absl/status/status.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns INVALID_ARGUMENT if the model does not support one of its heads.
absl::Status CheckHeads(const ModelDescription& model);

}  // namespace attendant
