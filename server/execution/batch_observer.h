// Watches a run for the entries of its batch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/layers/state/batch.h"
#include "server/base/clock.h"
#include "server/execution/entry_run.h"

namespace attendant::server {

// Hands out the targets of probabilities, collects what the entries want of each layer, and stops
// the run between two layers once all its entries are cancelled, failed or expired.
class BatchObserver final : public RunObserver {
 public:
  // `entries` are those of the batch, in the order of their sequences.
  BatchObserver(absl::Span<EntryRun* const> entries, const Clock& clock);

  float* ProbabilitiesTarget(int64_t layer, int64_t sequence) override;
  void OnValues(int64_t layer, MatrixView<const float> values) override;
  void AfterLayer(int64_t layer, MatrixView<const float> hidden_states) override;
  bool WantsMore() override;

 private:
  const absl::Span<EntryRun* const> entries_;
  const Clock& clock_;
  std::vector<std::pair<EntryRun*, int64_t>>
      sequences_;  // of the batch: whose, and which of its own
};

}  // namespace attendant::server
