#include "server/execution/batch_observer.h"

#include <algorithm>

namespace attendant::server {

BatchObserver::BatchObserver(absl::Span<EntryRun* const> entries, const Clock& clock)
    : entries_(entries), clock_(clock) {
  for (EntryRun* entry : entries_) {
    const int64_t count = entry->request().layout.sequences;
    for (int64_t b = 0; b < count; ++b) sequences_.emplace_back(entry, b);
  }
}

float* BatchObserver::ProbabilitiesTarget(int64_t layer, int64_t sequence) {
  const auto& [entry, own] = sequences_[sequence];
  return entry->ProbabilitiesTarget(layer, own);
}

void BatchObserver::OnValues(int64_t, MatrixView<const float> values) {
  for (EntryRun* entry : entries_) entry->TakeValues(values);
}

void BatchObserver::AfterLayer(int64_t layer, MatrixView<const float> hidden_states) {
  for (EntryRun* entry : entries_) {
    entry->TakeProbabilities(layer);
    entry->TakeIntermediate(layer, hidden_states);
  }
}

bool BatchObserver::WantsMore() {
  const absl::Time now = clock_.Now();
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const EntryRun* entry) { return CheckAwaited(entry->job(), now).ok(); });
}

}  // namespace attendant::server
