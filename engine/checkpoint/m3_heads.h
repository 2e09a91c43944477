// The heads that FlagEmbedding saves with an encoder such as bge-m3: token weights for sparse
// vectors, and token vectors for late interaction (Chen et al. 2024).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/weight_binder.h"

namespace attendant {

// Adds the heads that have files, sparse_linear.safetensors and colbert_linear.safetensors, in the
// folder, and binds their weights. Files with the same names that end in .pt are pickles, which are
// not read: they become a warning with the command that converts them. A model without modules.json
// that has one of the heads pools as the library does, if `options` do not say otherwise: the first
// token, scaled to length 1. Does nothing for models without embeddings, or with such heads
// already.
absl::Status AddM3Heads(const std::string& folder, const CheckpointOptions& options,
                        bool has_modules, Checkpoint& checkpoint, WeightBinder& binder);

}  // namespace attendant
