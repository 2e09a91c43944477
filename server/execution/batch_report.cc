#include "server/execution/batch_report.h"

#include <utility>

#include "server/models/compute_dtype.h"

namespace attendant::server {

void BatchReport::Record(const BatchCounts& counts) {
  counts_ = counts;
  const absl::Time now = context_.clock.Now();
  const double measured = absl::ToDoubleSeconds(computed_ - gathered_);
  const double predicted = counts.predicted_seconds * model_.cost->correction(now);
  model_.cost->Observe(counts.predicted_seconds, measured, now);
  copy_ = gathered_ - started_ + (now - computed_);
  std::vector<absl::Duration> slacks;
  for (const absl::Time deadline : counts.deadlines) {
    if (deadline != absl::InfiniteFuture()) slacks.push_back(deadline - now);
  }
  context_.metrics.RecordBatch({.model = model_.name,
                                .tokens = counts.tokens,
                                .requests = counts.requests,
                                .copy = copy_,
                                .compute = computed_ - gathered_,
                                .cost_ratio = predicted > 0 ? measured / predicted : 0,
                                .fully_masked_rows = counts.fully_masked_rows,
                                .nonfinite_requests = counts.nonfinite_requests,
                                .close = Name(counts.close),
                                .slacks = std::move(slacks)});
}

v1::Execution BatchReport::ExecutionOf(const JobInfo& job, int64_t truncated_tokens) const {
  v1::Execution execution;
  execution.set_queue_ns(absl::ToInt64Nanoseconds(QueuedOf(job)));
  execution.set_copy_ns(absl::ToInt64Nanoseconds(copy_));
  execution.set_compute_ns(absl::ToInt64Nanoseconds(computed_ - gathered_));
  execution.set_tokens(job.tokens);
  execution.set_truncated_tokens(truncated_tokens);
  execution.set_batch_tokens(counts_.tokens);
  execution.set_batch_requests(counts_.requests);
  SetComputeType(model_.encoder->mode().type, execution);
  return execution;
}

}  // namespace attendant::server
