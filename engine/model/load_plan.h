// Predicts the memory that loading a model takes, without reading weights. All functions return
// bytes.
#pragma once

#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns the memory of all weights, packed for `mode`.
CheckedSize PackedBytes(const ModelDescription& model, const ComputeMode& mode);

// Returns the peak memory of loading: PackedBytes, plus the largest linear weight, which is held
// while it is packed, plus the largest weight that the reader may hold in addition.
CheckedSize LoadBytes(const ModelDescription& model, const ComputeMode& mode);

// Returns LoadBytes for only the attention of layers with pruned heads.
CheckedSize PrunedAttentionBytes(const ModelDescription& model, const ComputeMode& mode);

}  // namespace attendant
