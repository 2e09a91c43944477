// Attention heads that a model does without: Michel et al. 2019.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/model_description.h"

namespace attendant {

// Whether a layer of the model does without some of its heads.
bool HasPrunedHeads(const ModelDescription& model);

// The model with all heads that its layers have been pruned of; what every layer has of its own is
// said of each.
ModelDescription WithAllHeads(ModelDescription model);

// Why layers of this shape cannot lose heads, "its keys …"; empty: they can.
std::string WhyNotPrunable(const LayerShape& layer);

// Takes the heads that `file` names out of an opened checkpoint: the rows of queries, keys and
// values with their biases, and the columns of the output projection. The file is JSON, from layers
// to the indices of their heads to remove, as in config.json: {"0": [2, 0], "11": [5]}. Layers that
// share their weights lose the same heads. NOT_FOUND: no such file. INVALID_ARGUMENT names the file
// and all that is wrong with it; the checkpoint is then as it was.
absl::Status PruneHeads(const std::string& file, Checkpoint& checkpoint);

}  // namespace attendant
