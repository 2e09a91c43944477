#include "server/execution/batch_report.h"

#include <utility>

#include "server/models/compute_dtype.h"

namespace attendant::server {

void BatchReport::CountDeadline(absl::Time deadline, int64_t tokens) {
  if (deadline < started_) dead_rows_ += tokens;
  if (deadline != absl::InfiniteFuture()) deadlines_.push_back(deadline);
}

void BatchReport::Finish(BatchRecord counts, double predicted_seconds) {
  record_ = std::move(counts);
  finished_ = context_.clock.Now();
  const double taken = absl::ToDoubleSeconds(finished_ - free_since_);
  const double predicted = predicted_seconds * model_->cost->correction(finished_);
  record_.copy_in = gathered_ - started_;
  record_.compute = computed_ - gathered_;
  record_.copy_out = finished_ - computed_;
  record_.finished = finished_;
  record_.cost_ratio = predicted > 0 ? taken / predicted : 0;
  record_.dead_rows = dead_rows_;
  model_->cost->Observe(predicted_seconds, taken, finished_);
}

void BatchReport::Record() {
  record_.model = model_->name;
  for (const absl::Time deadline : deadlines_) record_.slacks.push_back(deadline - finished_);
  context_.metrics.RecordBatch(record_);
}

v1::Execution BatchReport::ExecutionOf(const Job& job, int64_t truncated_tokens) const {
  v1::Execution execution;
  execution.set_queue_ns(absl::ToInt64Nanoseconds(QueuedOf(job)));
  execution.set_copy_ns(absl::ToInt64Nanoseconds(record_.copy_in + record_.copy_out));
  execution.set_compute_ns(absl::ToInt64Nanoseconds(record_.compute));
  execution.set_tokens(job.tokens);
  execution.set_truncated_tokens(truncated_tokens);
  execution.set_batch_tokens(record_.tokens);
  execution.set_batch_requests(static_cast<int32_t>(record_.requests));
  SetComputeType(model_->encoder->mode().type, execution);
  execution.set_model_version(model_->version);
  return execution;
}

}  // namespace attendant::server
