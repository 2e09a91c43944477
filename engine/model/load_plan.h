// The bytes that loading a model takes, before any weight is read.
#pragma once

#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"

namespace attendant {

// Weights packed for `mode`.
CheckedSize PackedBytes(const ModelDescription& model, const ComputeMode& mode);

// The same, plus the largest of them twice: as read, and in the hands of the
// reader.
CheckedSize LoadBytes(const ModelDescription& model, const ComputeMode& mode);

// LoadBytes of the attention of those layers alone that have been pruned of heads.
CheckedSize PrunedAttentionBytes(const ModelDescription& model, const ComputeMode& mode);

}  // namespace attendant
