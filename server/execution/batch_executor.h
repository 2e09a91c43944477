// Computes the batches of one instance.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/layers/encoder.h"
#include "server/batching/batch_runner.h"
#include "server/execution/batch_job.h"
#include "server/execution/row_plans.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Gather, run, scatter, answer. Holds the activations of every model; their pages are touched when
// they are used.
class BatchExecutor final : public BatchRunner {
 public:
  // Computes with that copy of each model's weights; `row_plans` gives each run the plan of its
  // model.
  BatchExecutor(const ServiceContext& context, int copy, RowPlans& row_plans);

  // The jobs are EncodeJobs.
  void Run(std::vector<std::unique_ptr<Job>> batch) override;

 private:
  using Jobs = std::vector<BatchJob*>;  // in the order of their rows

  struct Times {
    absl::Time started;
    absl::Time gathered;
    absl::Time computed;
  };

  void Compute(std::vector<BatchJob>& batch);
  Jobs Gather(std::vector<BatchJob>& batch, EncoderRun& run);
  // Where the memories of the batch go: behind its hidden states, the keys' before the values'.
  static CrossKvRows PlaceMemories(const std::vector<BatchJob>& batch);
  void Describe(const Jobs& jobs);
  absl::Status ProjectMemories(const Jobs& jobs, EncoderRun& run);
  absl::StatusOr<MatrixView<const float>> RunEngine(const Jobs& jobs, EncoderRun& run);
  void FailAll(const Jobs& jobs, const absl::Status& status);
  void Answer(const Jobs& jobs, MatrixView<const float> result, const Times& times,
              const EncoderRun& run);

  const ServiceContext& context_;
  std::map<const void*, EncoderRun> runs_;  // by the model's identity

  // The engine's view of the batch that runs now.
  std::vector<int32_t> cu_seqlens_;
  std::vector<const AttentionBias*> bias_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> wanted_rows_;  // empty: all
  CrossKvRows memory_rows_ = {};
  std::vector<CrossKv> memory_;  // empty: none attends to one
  std::vector<HeadGates> head_gates_;
  std::vector<LinearState> states_;  // empty: none is a part of a sequence
};

}  // namespace attendant::server
