// Norms of a model that was tuned in nothing else, to lie over those of the model it came from.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// The safetensors file `path`, whose tensors are norms (weights and biases) of `base`, named as in
// the base's files, or else as in weight_source.h. The answer has the base's description, and these
// norms alone as weights. Checks of OpenCheckpoint for the file; INVALID_ARGUMENT also for a tensor
// that is no norm of the base, and for a file without any.
absl::StatusOr<Checkpoint> OpenNormOverlay(const std::string& path, const Checkpoint& base,
                                           const CheckpointOptions& options);

// The same over a base without some of its heads. `pruned` is the base, opened without them; the
// answer has its description and reads from it, beside these norms, the attention of the layers
// that lost heads: what Encoder::LoadOverlay needs to lay this over the base with all heads.
absl::StatusOr<Checkpoint> OpenPrunedOverlay(const std::string& path, Checkpoint pruned,
                                             const CheckpointOptions& options);

}  // namespace attendant
