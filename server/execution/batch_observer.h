// Observes a run on behalf of its batch's entries.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/layers/state/batch.h"
#include "server/base/clock.h"
#include "server/execution/entry_run.h"

namespace attendant::server {

// Provides the targets of probabilities, collects each layer's requested results, and stops the run
// between two layers once all entries are cancelled, failed or expired.
class BatchObserver final : public RunObserver {
 public:
  // `entries` are the batch's entries, in the order of their sequences.
  BatchObserver(absl::Span<EntryRun* const> entries, const Clock& clock);

  float* ProbabilitiesTarget(int64_t layer, int64_t sequence) override;
  void OnValues(int64_t layer, MatrixView<const float> values) override;
  void AfterLayer(int64_t layer, MatrixView<const float> hidden_states) override;
  bool WantsMore() override;

 private:
  const absl::Span<EntryRun* const> entries_;
  const Clock& clock_;
  std::vector<std::pair<EntryRun*, int64_t>>
      sequences_;  // for each of the batch, its entry and its index there
};

}  // namespace attendant::server
