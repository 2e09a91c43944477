// Watches a run for the jobs of its batch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/layers/state/batch.h"
#include "server/base/clock.h"
#include "server/execution/batch_job.h"

namespace attendant::server {

// Hands out the targets of probabilities, collects what the jobs want of each layer, and stops the
// run between two layers when nobody waits for any of its jobs.
class BatchObserver final : public RunObserver {
 public:
  // `jobs` are those of the batch, in the order of their sequences.
  BatchObserver(absl::Span<BatchJob* const> jobs, const Clock& clock);

  float* ProbabilitiesTarget(int64_t layer, int64_t sequence) override;
  void OnValues(int64_t layer, MatrixView<const float> values) override;
  void AfterLayer(int64_t layer, MatrixView<const float> hidden_states) override;
  bool WantsMore() override;

 private:
  const absl::Span<BatchJob* const> jobs_;
  const Clock& clock_;
  std::vector<std::pair<BatchJob*, int64_t>>
      sequences_;  // of the batch: whose, and which of its own
};

}  // namespace attendant::server
