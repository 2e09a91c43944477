// The low-rank adapters in the files of a checkpoint, one for each task: Sturua et al. 2024
// (jina-embeddings-v3).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/low_rank_weights.h"

namespace attendant {

// Whether a tensor is one of a task adapter.
bool IsOfTaskAdapter(absl::string_view name);

// The tasks that config.json of a folder lists; none if it lists none.
std::vector<std::string> ListTasks(const std::string& folder);

// The products of an adapter, by the names of the original tensors.
using TaskProducts = std::vector<std::pair<std::string, LowRankProduct>>;

// Binds the adapter of one task. A tensor "X.parametrizations.weight.original" [out, in] gets
// lora_alpha / lora_rank B[t] A[t], with "X.parametrizations.weight.0.lora_A" [tasks, rank, in] and
// "….lora_B" [tasks, out, rank]; a table [rows, width] gets A[t] B[t], with A [tasks, rows, rank]
// and B [tasks, rank, width]. Tensors that do not fit are problems of the binder. INVALID_ARGUMENT:
// config.json of the folder has no such task, or no scale.
absl::StatusOr<TaskProducts> BindTaskAdapter(const std::string& folder, const std::string& task,
                                             WeightBinder& binder);

// Merges the products into the checkpoint, to whose weights their matrices are bound.
absl::Status AddTaskAdapter(TaskProducts adapter, Checkpoint& checkpoint);

}  // namespace attendant
