// The parts of CheckDescription (check_description.h) that have files of their own.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns INVALID_ARGUMENT with a message made of the parts as absl::StrCat does.
template <typename... Parts>
absl::Status BadModel(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("model description: ", parts...));
}

// Returns INVALID_ARGUMENT if the model does not support one of its heads.
absl::Status CheckHeads(const ModelDescription& model);

// Returns INVALID_ARGUMENT unless the layer map names all weight sets, there are no shapes or one
// per weight set, and each shape fits into the common one. Does not check each shape by itself.
absl::Status CheckLayerShapes(const ModelDescription& model);

}  // namespace attendant
