// Pruning of attention heads in an opened checkpoint; see engine/model/pruned_heads.h.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Removes the heads that `file` names from an opened checkpoint: their rows of the query, key and
// value projections with the biases, and their columns of the output projection. The file is JSON
// and maps each layer to the indices of the heads to remove, as config.json does: {"0": [2, 0],
// "11": [5]}. Layers that share their weights must lose the same heads. Returns NOT_FOUND if there
// is no such file. INVALID_ARGUMENT lists all problems of the file; the checkpoint is then
// unchanged.
absl::Status PruneHeads(const std::string& file, Checkpoint& checkpoint);

}  // namespace attendant
