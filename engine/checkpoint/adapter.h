// Low-rank adapters in the format of PEFT: Hu et al. 2021 (LoRA).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Merges an adapter into an opened checkpoint: W + s B A for a linear layer, and W + s (B A)^T for
// a table of embeddings, where s is lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora.
// `folder` has adapter_config.json and adapter_model.safetensors, which name modules as the
// checkpoint's files do; the prefix may differ. Weights are merged as they are read. NOT_FOUND:
// there is no adapter. INVALID_ARGUMENT names everything that is wrong with it. After an error the
// checkpoint is unchanged.
absl::Status MergeAdapter(const std::string& folder, const CheckpointOptions& options,
                          Checkpoint& checkpoint);

// Refuses the adapter of a sentence-transformers model whose base, the folder `base`, has no
// modules: the base's are used.
absl::Status CheckModulesOfAdapter(const std::string& folder, const std::string& base);

// Refuses a folder without a model if it has an adapter, and says how to serve both. OK if it has
// none.
absl::Status RefuseAdapterAlone(const std::string& folder);

}  // namespace attendant
