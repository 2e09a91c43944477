// Norm overlays: the norms of a model in which only the norms were fine-tuned. They replace the
// norms of the base model; all other weights are shared with it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Opens the safetensors file `path`, which must contain only norm weights and biases of `base`,
// named as in the base's files or else by their canonical names (weight_source.h). Returns the
// base's description with these norms as the only weights. The file is checked as OpenCheckpoint
// checks one; a tensor that is not a norm of the base, and a file without tensors, are
// INVALID_ARGUMENT too.
absl::StatusOr<Checkpoint> OpenNormOverlay(const std::string& path, const Checkpoint& base,
                                           const CheckpointOptions& options);

// Opens the norms of a model that also lacks some heads of its base. `pruned` is the base, opened
// without these heads. The result has the description of `pruned`, reads the norms from the file
// and everything else from `pruned`. Encoder::LoadOverlay can lay it over the base with all heads:
// it then reads the attention of the layers that lost heads.
absl::StatusOr<Checkpoint> OpenPrunedOverlay(const std::string& path, Checkpoint pruned,
                                             const CheckpointOptions& options);

}  // namespace attendant
