#include "server/execution/run_registrations.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/base/fault.h"
#include "server/execution/batch_report.h"
#include "server/execution/row_gatherer.h"

namespace attendant::server {
namespace {

// Jobs that have ended are reset.
using Jobs = std::vector<std::shared_ptr<RegistrationJob>>;

// A job whose rows are gathered.
struct Gathered {
  std::shared_ptr<RegistrationJob>& job;
  int64_t first_row;  // among the projected rows of the batch
};

CrossKvRange PlaceRows(const Jobs& jobs) {
  int64_t tokens = 0;
  for (const auto& job : jobs) tokens += job->request().cross_kv_rows.layout.tokens();
  return PlaceCrossKv(0, tokens, jobs.front()->request().cross_kv_rows.values.has_value());
}

void CopyRows(MatrixView<const float> from, int64_t first_row, MatrixView<float> to) {
  for (int64_t r = 0; r < to.rows; ++r) std::copy_n(from.row(first_row + r), to.cols, to.row(r));
}

void Finish(std::shared_ptr<RegistrationJob>& place, const BatchReport& report,
            CrossKvStore& store) {
  const std::shared_ptr<RegistrationJob> job = std::exchange(place, nullptr);
  const RegistrationRequest& request = job->request();
  const absl::Status status = Guarded([&] {
    job->ChangeResponse([&](RegistrationResponse& response) {
      response.ticket = store.Add(request.cross_kv, request.age);
      response.execution = report.ExecutionOf(*job, /*truncated_tokens=*/0);
    });
  });
  job->EndPart(1, report.QueuedOf(*job), status);
}

// Ends a job that was started.
void Fail(std::shared_ptr<RegistrationJob>& place, const absl::Status& status) {
  std::exchange(place, nullptr)->EndPart(1, absl::ZeroDuration(), status);
}

void Run(Jobs& all, BatchClose close, EncoderRun& run, const ServiceContext& context,
         absl::Time& free_since) {
  const RegistrationRequest& leader = all.front()->request();
  const LayerSpan span = leader.span;
  BatchReport report(context, span.model, free_since);
  const SpanCost cost = span.model->cost->Predict(leader.range());
  BatchCounts counts{.predicted_seconds = cost.per_batch, .close = close};
  std::vector<Gathered> jobs;
  CrossKvRange place = PlaceRows(all);
  for (std::shared_ptr<RegistrationJob>& job : all) {
    const CrossKvRows& rows = job->request().cross_kv_rows;
    RowGatherer gatherer(context.limits.reject_nonfinite);
    absl::Status status = CheckAwaited(*job, context.clock.Now());
    if (status.ok()) status = Guarded([&] { return gatherer.GatherCrossKv(rows, place, run); });
    if (!status.ok()) {
      Fail(job, status);
      continue;
    }
    jobs.push_back({job, place.rows});
    place.rows += rows.layout.tokens();
    counts.tokens += job->tokens;
    counts.requests += 1;
    report.CountDeadline(job->deadline, job->tokens);
    counts.predicted_seconds += cost.OfSequence(rows.layout.tokens(), 0);
    counts.nonfinite_requests += gatherer.nonfinite() ? 1 : 0;
  }
  if (jobs.empty()) return;
  report.Gathered();
  const absl::StatusOr<CrossKv> projected = run.ProjectCrossKv(span.first_layer, place);
  for (const auto& [job, first_row] : jobs) {
    if (!projected.ok()) {
      Fail(job, projected.status());
      continue;
    }
    RegisteredCrossKv& kept = *job->request().cross_kv;
    CopyRows(projected->keys, first_row, kept.keys());
    CopyRows(projected->values, first_row, kept.values());
  }
  if (!projected.ok()) return;
  report.Computed();
  report.Finish(counts);
  free_since = report.finished();
  for (const Gathered& each : jobs) Finish(each.job, report, context.cross_kv);
  Guarded([&] { report.Record(); }).IgnoreError();  // one that cannot be counted fails nothing
}

}  // namespace

void RunRegistrations(const Batch<ServiceJob>& batch, EncoderRun& run,
                      const ServiceContext& context, absl::Time& free_since) {
  Jobs jobs;
  jobs.reserve(batch.pieces.size());
  for (const Piece<ServiceJob>& piece : batch.pieces) {
    if (piece.job.registration()->Start()) jobs.push_back(piece.job.registration());
  }
  if (jobs.empty()) return;
  const absl::Status status = Guarded([&] { Run(jobs, batch.close, run, context, free_since); });
  if (status.ok()) return;
  for (auto& job : jobs) {
    if (job != nullptr) Fail(job, status);
  }
}

}  // namespace attendant::server
