#include "server/execution/request_job.h"

#include <algorithm>

#include "server/request/request_slice.h"

namespace attendant::server {
namespace {

struct Prediction {
  SpanCost cost;
  double correction;  // of the cost's seconds
};

// Predicts what a batch costs whatever is in it.
template <typename JobOfMethod>
Prediction Predict(const ServiceContext& context, JobOfMethod& job) {
  const absl::Time now = context.clock.Now();
  const CostModel& model = *job.request().span.model->cost;
  const Prediction prediction = {model.Predict(job.request().range()), model.correction(now)};
  job.overhead = prediction.cost.per_batch * prediction.correction;
  return prediction;
}

// Kept tokens that are gathered for a sequence; at least one, as also a masked one takes some work.
int64_t TokensOf(const ComputeRequest& request, int64_t sequence) {
  int64_t tokens = request.layout.length(sequence);
  if (const CrossKvRows* rows = request.cross_kv_rows()) {
    // The rows that all sequences share are counted with the first one.
    const bool shared = rows->layout.sequences == 1;
    if (sequence == 0 || !shared) {
      tokens += rows->layout.length(shared ? 0 : sequence) * (rows->values ? 2 : 1);
    }
  }
  return std::max<int64_t>(1, tokens);
}

bool Fits(const Slice& sequence, const Slice& slice, double seconds, int64_t tokens) {
  return slice.seconds + sequence.seconds <= seconds && slice.tokens + sequence.tokens <= tokens;
}

}  // namespace

void PlanJob(const ServiceContext& context, ComputeJob& job) {
  const auto [cost, correction] = Predict(context, job);
  const ComputeRequest& request = job.request();
  const bool divisible = CanBeSliced(request);
  const double room = absl::ToDoubleSeconds(context.limits.max_batch_seconds);
  job.slices.clear();
  for (int64_t b = 0; b < request.sequences(); ++b) {
    const Slice sequence = {1, TokensOf(request, b), request.PredictSeconds(b, cost) * correction};
    if (job.slices.empty() ||
        (divisible && !Fits(sequence, job.slices.back(), room, context.limits.max_batch_tokens))) {
      job.slices.push_back(sequence);
      continue;
    }
    Slice& slice = job.slices.back();
    slice.sequences += 1;
    slice.tokens += sequence.tokens;
    slice.seconds += sequence.seconds;
  }
}

void PlanJob(const ServiceContext& context, RegistrationJob& job) {
  const auto [cost, correction] = Predict(context, job);
  job.slices = {{1, job.tokens, cost.OfSequence(job.tokens, 0) * correction}};
}

}  // namespace attendant::server
