// The rules of CheckDescription (check_description.h) for heads.
#pragma once

#include "absl/status/status.h"
#include "engine/model/model_description.h"

namespace attendant {

// INVALID_ARGUMENT if the model cannot have such a head.
absl::Status CheckHeads(const ModelDescription& model);

}  // namespace attendant
