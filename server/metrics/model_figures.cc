#include "server/metrics/model_figures.h"

#include "server/metrics/server_metrics.h"

namespace attendant::server {

void FiguresByModel::Add(const RequestRecord& record) {
  if (record.model.empty() || record.sequences == 0) return;
  absl::MutexLock lock(&mutex_);
  ModelFigures& figures = models_[record.model];
  if (record.code != absl::StatusCode::kOk) {
    ++figures.failed;
    figures.failed_time += record.elapsed;
    return;
  }
  ++figures.answered;
  figures.answered_time += record.elapsed;
  figures.queued += record.queued.value_or(absl::ZeroDuration());
  figures.sequences += record.sequences;
}

void FiguresByModel::Add(const BatchRecord& record) {
  absl::MutexLock lock(&mutex_);
  ModelFigures& figures = models_[record.model];
  ++figures.batches;
  figures.copied_in += record.requests * record.copy_in;
  figures.computed += record.requests * record.compute;
  figures.copied_out += record.requests * record.copy_out;
  figures.last = record.finished;
}

ModelFigures FiguresByModel::Find(const std::string& model) const {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(model);
  return found == models_.end() ? ModelFigures() : found->second;
}

}  // namespace attendant::server
