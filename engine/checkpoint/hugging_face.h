// Folders as published on the Hugging Face hub: config.json with safetensors, and the files of
// sentence-transformers beside them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Pooling is what modules.json says if there is one, else the checkpoint's own pooler (a tanh layer
// on the first token), else none. Tensors beyond the encoder are listed as unused; one that is not
// known but has a name of the encoder's is refused. As InspectCheckpoint.
absl::Status OpenHuggingFace(const std::string& folder, const CheckpointOptions& options,
                             Checkpoint& checkpoint);

}  // namespace attendant
