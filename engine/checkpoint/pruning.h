// Takes attention heads out of an opened checkpoint; see engine/model/pruned_heads.h.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Takes the heads that `file` names out of an opened checkpoint: the rows of queries, keys and
// values with their biases, and the columns of the output projection. The file is JSON, from layers
// to the indices of their heads to remove, as in config.json: {"0": [2, 0], "11": [5]}. Layers that
// share their weights lose the same heads. NOT_FOUND: no such file. INVALID_ARGUMENT names the file
// and all that is wrong with it; the checkpoint is then as it was.
absl::Status PruneHeads(const std::string& file, Checkpoint& checkpoint);

}  // namespace attendant
