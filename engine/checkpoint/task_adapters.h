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

// The adapter of one task. A tensor "X.parametrizations.weight.original" [out, in] gets
// lora_alpha / lora_rank B[t] A[t], with "X.parametrizations.weight.0.lora_A" [tasks, rank, in] and
// "….lora_B" [tasks, out, rank]; a table [rows, width] gets A[t] B[t], with A [tasks, rows, rank]
// and B [tasks, rank, width].
class TaskAdapter {
 public:
  // INVALID_ARGUMENT: config.json of the folder has no such task, or no scale.
  static absl::StatusOr<TaskAdapter> Read(const std::string& folder, const std::string& task);

  // Binds the matrices of all tensors of the binder. Tensors that do not fit are problems.
  void Bind(WeightBinder& binder);
  // Merges the bound matrices into the checkpoint. Its weights must have been read.
  absl::Status AddTo(Checkpoint& checkpoint);

 private:
  int64_t index_ = 0, tasks_ = 0;
  double alpha_ = 0;
  std::vector<std::pair<std::string, LowRankProduct>> products_;  // by the name of the original
};

}  // namespace attendant
