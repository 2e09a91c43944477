// The check that a description is that of a model that can be computed.
#pragma once

#include "absl/status/status.h"
#include "engine/model/model_description.h"

namespace attendant {

// INVALID_ARGUMENT: sizes that are not positive or overflow, or parts that do not fit together.
absl::Status CheckDescription(const ModelDescription& model);

}  // namespace attendant
