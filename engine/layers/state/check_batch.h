// Validation of the batches that callers pass to EncoderRun.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "engine/layers/state/batch.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns INVALID_ARGUMENT if `batch` is not a valid packed batch or has inputs that the model does
// not support, and RESOURCE_EXHAUSTED if it has more than `max_tokens` tokens or a sequence attends
// to more than `max_tokens` rows of cross_kv.
absl::Status CheckBatch(const PackedBatch& batch, const ModelDescription& model,
                        int64_t max_tokens);

}  // namespace attendant
