#include "server/execution/run_registrations.h"

#include <algorithm>
#include <utility>

#include "server/execution/batch_report.h"
#include "server/execution/fault.h"
#include "server/execution/request_job.h"
#include "server/execution/row_gatherer.h"

namespace attendant::server {
namespace {

// A job whose rows are gathered.
struct Gathered {
  std::unique_ptr<Job>& job;
  int64_t first_row;  // among the projected rows of the batch
};

const RegistrationRequest& RequestOf(const Job& job) {
  return static_cast<const RegistrationJob&>(job).request();
}

CrossKvRange PlaceRows(const std::vector<std::unique_ptr<Job>>& batch) {
  int64_t tokens = 0;
  for (const std::unique_ptr<Job>& job : batch) {
    tokens += RequestOf(*job).cross_kv_rows.layout.tokens();
  }
  return PlaceCrossKv(0, tokens, RequestOf(*batch.front()).cross_kv_rows.values.has_value());
}

void CopyRows(MatrixView<const float> from, int64_t first_row, MatrixView<float> to) {
  for (int64_t r = 0; r < to.rows; ++r) std::copy_n(from.row(first_row + r), to.cols, to.row(r));
}

void Finish(std::unique_ptr<Job>& place, const BatchReport& report, CrossKvStore& store) {
  const RegistrationRequest& request = RequestOf(*place);
  RegistrationResponse response;
  const absl::Status status = Guarded([&] {
    response = {store.Add(request.cross_kv, request.age),
                report.ExecutionOf(*place, /*truncated_tokens=*/0)};
  });
  const std::unique_ptr<Job> job = std::exchange(place, nullptr);
  if (!status.ok()) return job->Fail(status);
  static_cast<RegistrationJob&>(*job).Finish(std::move(response), report.QueuedOf(*job));
}

}  // namespace

void RunRegistrations(std::vector<std::unique_ptr<Job>>& batch, EncoderRun& run,
                      const ServiceContext& context) {
  const LayerSpan span = RequestOf(*batch.front()).span;
  BatchReport report(context, *span.model);
  const SpanCost cost = span.model->cost->Predict(RequestOf(*batch.front()).range());
  BatchCounts counts{.predicted_seconds = cost.per_batch};
  std::vector<Gathered> jobs;
  CrossKvRange place = PlaceRows(batch);
  for (std::unique_ptr<Job>& job : batch) {
    const CrossKvRows& rows = RequestOf(*job).cross_kv_rows;
    RowGatherer gatherer(context.limits.reject_nonfinite);
    absl::Status status = CheckAwaited(*job, context.clock.Now());
    if (status.ok()) {
      status.Update(Guarded([&] { status = gatherer.GatherCrossKv(rows, place, run); }));
    }
    if (!status.ok()) {
      std::exchange(job, nullptr)->Fail(status);
      continue;
    }
    jobs.push_back({job, place.rows});
    place.rows += rows.layout.tokens();
    counts.tokens += job->tokens;
    counts.requests += 1;
    counts.predicted_seconds += cost.OfSequence(rows.layout.tokens(), 0);
    counts.nonfinite_requests += gatherer.nonfinite() ? 1 : 0;
  }
  if (jobs.empty()) return;
  report.Gathered();
  const absl::StatusOr<CrossKv> projected = run.ProjectCrossKv(span.first_layer, place);
  for (const auto& [job, first_row] : jobs) {
    if (!projected.ok()) {
      std::exchange(job, nullptr)->Fail(projected.status());
      continue;
    }
    RegisteredCrossKv& kept = *RequestOf(*job).cross_kv;
    CopyRows(projected->keys, first_row, kept.keys());
    CopyRows(projected->values, first_row, kept.values());
  }
  if (!projected.ok()) return;
  report.Computed();
  // A batch that cannot be counted is answered all the same.
  Guarded([&] { report.Record(counts); }).IgnoreError();
  for (const Gathered& each : jobs) Finish(each.job, report, context.cross_kv);
}

}  // namespace attendant::server
