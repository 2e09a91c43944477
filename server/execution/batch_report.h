// Times and counts of a batch, for metrics and responses.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/batching/job.h"
#include "server/metrics/server_metrics.h"
#include "server/models/served_model.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Measures from construction. Not thread-safe.
class BatchReport {
 public:
  // `context` must outlive this object. `free_since` is when the instance became free or, if it was
  // idle, when the batch arrived. The gap between two batches of a busy instance, such as waiting
  // for a CPU, counts as part of a batch's cost, because waiting jobs wait for it too.
  BatchReport(const ServiceContext& context, std::shared_ptr<const ServedModel> model,
              absl::Time free_since)
      : context_(context),
        model_(std::move(model)),
        free_since_(free_since),
        started_(context.clock.Now()) {}

  // Call when all rows are gathered, and when everything is computed.
  void Gathered() { gathered_ = context_.clock.Now(); }
  void Computed() { computed_ = context_.clock.Now(); }

  // Counts the deadline of a job with `tokens` tokens in the batch.
  void CountDeadline(absl::Time deadline, int64_t tokens);

  // Call when the results are available: reports to the cost model how long the instance was busy.
  // `counts` has the numbers of the record; `predicted_seconds` is by the cost model, without its
  // correction.
  void Finish(BatchRecord counts, double predicted_seconds);
  absl::Time finished() const { return finished_; }
  // Call once, when the jobs are completed, which should not wait for it: records the batch in the
  // metrics.
  void Record();

  // After Finish: the job's queueing time, and the execution to report in its response.
  absl::Duration QueuedOf(const Job& job) const { return started_ - job.enqueued; }
  v1::Execution ExecutionOf(const Job& job, int64_t truncated_tokens) const;

 private:
  const ServiceContext& context_;
  std::shared_ptr<const ServedModel> model_;  // not const, so that it can be moved
  const absl::Time free_since_;
  const absl::Time started_;
  absl::Time gathered_;
  absl::Time computed_;
  absl::Time finished_;
  BatchRecord record_;
  std::vector<absl::Time> deadlines_;
  int64_t dead_rows_ = 0;
};

}  // namespace attendant::server
