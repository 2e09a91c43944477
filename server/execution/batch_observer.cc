#include "server/execution/batch_observer.h"

#include <algorithm>

namespace attendant::server {

BatchObserver::BatchObserver(absl::Span<BatchJob* const> jobs, const Clock& clock)
    : jobs_(jobs), clock_(clock) {
  for (BatchJob* job : jobs_) {
    const int64_t count = job->request().layout.sequences;
    for (int64_t b = 0; b < count; ++b) sequences_.emplace_back(job, b);
  }
}

float* BatchObserver::ProbabilitiesTarget(int64_t layer, int64_t sequence) {
  const auto& [job, own] = sequences_[sequence];
  return job->ProbabilitiesTarget(layer, own);
}

void BatchObserver::OnValues(int64_t, MatrixView<const float> values) {
  for (BatchJob* job : jobs_) job->TakeValues(values);
}

void BatchObserver::AfterLayer(int64_t layer, MatrixView<const float> hidden_states) {
  for (BatchJob* job : jobs_) {
    job->TakeProbabilities(layer);
    job->TakeIntermediate(layer, hidden_states);
  }
}

bool BatchObserver::WantsMore() {
  const absl::Time now = clock_.Now();
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [&](const BatchJob* job) { return CheckAwaited(job->job(), now).ok(); });
}

}  // namespace attendant::server
