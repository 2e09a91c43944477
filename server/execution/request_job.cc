#include "server/execution/request_job.h"

#include <algorithm>

namespace attendant::server {
namespace {

void SetDeadline(const ServiceContext& context, absl::Time now, JobInfo& job) {
  if (job.deadline == absl::InfiniteFuture()) job.deadline = now + context.limits.default_deadline;
}

}  // namespace

void PlanJob(const ServiceContext& context, ComputeJob& job) {
  const absl::Time now = context.clock.Now();
  SetDeadline(context, now, job);
  const ComputeRequest& request = job.request();
  const CostModel& model = *request.span.model->cost;
  const SpanCost cost = model.Predict(request.range());
  const double correction = model.correction(now);
  job.overhead = cost.per_batch * correction;
  job.slices = {{request.layout.sequences, std::max(job.tokens, request.layout.sequences),
                 request.PredictSeconds(cost) * correction}};
}

void PlanJob(const ServiceContext& context, RegistrationJob& job) {
  const absl::Time now = context.clock.Now();
  SetDeadline(context, now, job);
  const RegistrationRequest& request = job.request();
  const CostModel& model = *request.span.model->cost;
  const SpanCost cost = model.Predict(request.range());
  const double correction = model.correction(now);
  job.overhead = cost.per_batch * correction;
  job.slices = {{1, job.tokens, cost.OfSequence(job.tokens, 0) * correction}};
}

}  // namespace attendant::server
