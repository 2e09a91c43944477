// The parts of CheckDescription (check_description.h) that have files of their own.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/model/model_description.h"

namespace attendant {

// The rules of descriptions. Keeps the error of the first rule that a description breaks.
class DescriptionRules {
 public:
  // The message of a description for which `holds` is false is made of the parts as absl::StrCat
  // does.
  template <typename... Parts>
  void Require(bool holds, const Parts&... parts) {
    if (holds || !status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat("model description: ", parts...));
  }

  // OK, or INVALID_ARGUMENT.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// Requires that the model supports its heads.
void RequireHeads(const ModelDescription& model, DescriptionRules& rules);

// Requires that the layer map names all weight sets, that there are no shapes or one per weight
// set, and that each shape fits into the common one. Does not check each shape by itself.
void RequireLayerShapes(const ModelDescription& model, DescriptionRules& rules);

}  // namespace attendant
