// The bytes that loading a model takes, before any weight is read.
#pragma once

#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns the bytes of all weights, packed for `mode`.
CheckedSize PackedBytes(const ModelDescription& model, const ComputeMode& mode);

// Returns PackedBytes, the largest weight of a linear layer, which exists as read while it is
// packed, and the largest one that may exist once more in its reader.
CheckedSize LoadBytes(const ModelDescription& model, const ComputeMode& mode);

// LoadBytes of the attention of those layers alone that have been pruned of heads.
CheckedSize PrunedAttentionBytes(const ModelDescription& model, const ComputeMode& mode);

}  // namespace attendant
