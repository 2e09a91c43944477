// The check of a batch that callers of the engine give to a run.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "engine/layers/state/batch.h"
#include "engine/model/model_description.h"

namespace attendant {

// INVALID_ARGUMENT: it is no packed batch, or has something that the model cannot take.
// RESOURCE_EXHAUSTED: it has more than `max_tokens` tokens, or so many rows of cross_kv.
absl::Status CheckBatch(const PackedBatch& batch, const ModelDescription& model,
                        int64_t max_tokens);

}  // namespace attendant
