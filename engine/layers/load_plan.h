// What can be said about loading a model before any weight is read.
#pragma once

#include "absl/status/status.h"
#include "engine/base/compute_type.h"
#include "engine/checkpoint/model_description.h"
#include "engine/layers/checked_size.h"

namespace attendant {

// INVALID_ARGUMENT: sizes that are not positive or overflow, or parts that do not fit together.
absl::Status CheckDescription(const ModelDescription& model);

// Weights packed for `mode`.
CheckedSize PackedBytes(const ModelDescription& model, const ComputeMode& mode);

// The same, plus the largest of them twice: as read, and in the hands of the
// reader.
CheckedSize LoadBytes(const ModelDescription& model, const ComputeMode& mode);

// LoadBytes of the attention of those layers alone that have been pruned of heads.
CheckedSize PrunedAttentionBytes(const ModelDescription& model, const ComputeMode& mode);

}  // namespace attendant
