// Model folders as published on the Hugging Face hub: config.json with safetensors, optionally with
// the files of sentence-transformers.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Opens such a folder; errors, and `checkpoint` after an error, are as for InspectCheckpoint. The
// pooling is the one that modules.json describes; without that file it is the checkpoint's own
// pooler (a tanh layer on the first token), if it has one. Tensors that do not belong to the
// encoder are listed as unused; an unknown tensor with the name of an encoder tensor is refused.
absl::Status OpenHuggingFace(const std::string& folder, const CheckpointOptions& options,
                             Checkpoint& checkpoint);

}  // namespace attendant
