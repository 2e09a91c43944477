#include "server/execution/batch_report.h"

#include <utility>

#include "server/models/compute_dtype.h"

namespace attendant::server {

void BatchReport::CountDeadline(absl::Time deadline, int64_t tokens) {
  if (deadline < started_) dead_rows_ += tokens;
  if (deadline != absl::InfiniteFuture()) deadlines_.push_back(deadline);
}

void BatchReport::Finish(const BatchCounts& counts) {
  counts_ = counts;
  finished_ = context_.clock.Now();
  const double taken = absl::ToDoubleSeconds(finished_ - free_since_);
  const double predicted = counts_.predicted_seconds * model_->cost->correction(finished_);
  if (predicted > 0) cost_ratio_ = taken / predicted;
  model_->cost->Observe(counts_.predicted_seconds, taken, finished_);
}

void BatchReport::Record() const {
  std::vector<absl::Duration> slacks;
  for (const absl::Time deadline : deadlines_) slacks.push_back(deadline - finished_);
  context_.metrics.RecordBatch({.model = model_->name,
                                .tokens = counts_.tokens,
                                .requests = counts_.requests,
                                .copy_in = gathered_ - started_,
                                .compute = computed_ - gathered_,
                                .copy_out = finished_ - computed_,
                                .finished = finished_,
                                .cost_ratio = cost_ratio_,
                                .fully_masked_rows = counts_.fully_masked_rows,
                                .nonfinite_requests = counts_.nonfinite_requests,
                                .close = Name(counts_.close),
                                .slacks = std::move(slacks),
                                .dead_rows = dead_rows_});
}

v1::Execution BatchReport::ExecutionOf(const Job& job, int64_t truncated_tokens) const {
  v1::Execution execution;
  execution.set_queue_ns(absl::ToInt64Nanoseconds(QueuedOf(job)));
  execution.set_copy_ns(absl::ToInt64Nanoseconds(gathered_ - started_ + (finished_ - computed_)));
  execution.set_compute_ns(absl::ToInt64Nanoseconds(computed_ - gathered_));
  execution.set_tokens(job.tokens);
  execution.set_truncated_tokens(truncated_tokens);
  execution.set_batch_tokens(counts_.tokens);
  execution.set_batch_requests(counts_.requests);
  SetComputeType(model_->encoder->mode().type, execution);
  execution.set_model_version(model_->version);
  return execution;
}

}  // namespace attendant::server
