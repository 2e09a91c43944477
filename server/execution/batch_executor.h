// Computes the batches of one instance.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/layers/encoder.h"
#include "server/batching/batch_runner.h"
#include "server/execution/batch_ender.h"
#include "server/execution/batch_job.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Gather, run, scatter, and hand the results to the ender, which responds.
class BatchExecutor final : public BatchRunner<ServiceJob> {
 public:
  // Computes with that instance's run of each model, on `thread_plan.threads_per_instance` threads.
  // To be made on the instance's thread, which it binds to the instance's node.
  BatchExecutor(const ServiceContext& context, int instance);

  void Run(Batch<ServiceJob> batch) override;

 private:
  using Jobs = std::vector<BatchJob*>;  // in the order of their rows

  void RunKind(const Batch<ServiceJob>& batch);
  void RunJobs(std::vector<BatchJob>& batch, BatchClose close, EncoderRun& run);
  void Compute(const Batch<ServiceJob>& batch, EncoderRun& run);
  Jobs Gather(std::vector<BatchJob>& batch, EncoderRun& run);
  static CrossKvRange PlaceCrossKvOf(const std::vector<BatchJob>& batch);
  void Describe(const Jobs& jobs);
  absl::Status ProjectCrossKv(const Jobs& jobs, EncoderRun& run);
  absl::StatusOr<MatrixView<const float>> RunEngine(const Jobs& jobs, EncoderRun& run);
  // Makes the vectors of sequences and of tokens.
  void ApplyHeads(const Jobs& jobs, MatrixView<const float> result, const EncoderRun& run);
  // Makes the sparse vectors of sequences.
  void WeighVocabulary(const Jobs& jobs, MatrixView<const float> result, EncoderRun& run);
  void FailAll(const Jobs& jobs, const absl::Status& status);
  // `counts` has what is known before.
  void TakeResults(const Jobs& jobs, MatrixView<const float> result, const EncoderRun& run,
                   BatchCounts counts, BatchReport& report);

  const ServiceContext& context_;
  const int instance_;
  absl::Time free_since_;  // when the batch before had ended, but for its answers

  // The engine's view of the batch that runs now.
  std::vector<int32_t> cu_seqlens_;
  std::vector<const AttentionBias*> bias_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> wanted_rows_;  // empty: all
  CrossKvRange cross_kv_rows_ = {};
  std::vector<CrossKv> cross_kv_;  // empty: all attend to themselves
  std::vector<HeadGates> head_gates_;
  std::vector<LinearState> states_;  // empty: none is a chunk of a sequence

  // A sequence to pool, or a tile of tokens.
  struct HeadItem {
    BatchJob* job;
    int64_t index;
    bool is_tile;
    absl::Status status;
  };
  std::vector<HeadItem> head_items_;
  std::vector<VocabularySequence> vocabulary_sequences_;
  std::vector<std::vector<float>> pooled_;  // a vector for each worker of the team

  BatchEnder ender_;
};

}  // namespace attendant::server
