// Computes the batches of one instance.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/encoder.h"
#include "server/batching/instance_pool.h"
#include "server/execution/batch_completer.h"
#include "server/execution/entry_run.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Gather, run, scatter, and hand the results to the completer, which responds. One thread.
class BatchExecutor {
 public:
  // Computes with that instance's run of each model, on `thread_plan.threads_per_instance` threads.
  // To be made on the instance's thread, which it binds to the instance's node.
  BatchExecutor(const ServiceContext& context, int instance);

  // Computes and completes the jobs of `batch`, which is not empty and has ComputeJobs. A job that
  // cannot be computed is failed. Does not throw.
  void Run(const Batch& batch);

 private:
  using Entries = std::vector<EntryRun*>;  // in the order of their rows

  // Returns those whose jobs have not failed.
  std::vector<EntryRun> Begin(const Batch& batch);
  void RunEntries(std::vector<EntryRun>& batch, BatchClose close, EncoderRun& run);
  Entries Gather(std::vector<EntryRun>& batch, EncoderRun& run);
  // Returns room for the rows of cross-attention after those of the hidden states: first of the
  // keys, then of the values if there are any. Nothing is there yet.
  static CrossKvRange PlaceCrossKv(const std::vector<EntryRun>& batch);
  void Describe(const Entries& entries);
  absl::Status ProjectCrossKv(const Entries& entries, EncoderRun& run);
  absl::StatusOr<MatrixView<const float>> RunEngine(const Entries& entries, EncoderRun& run);
  // Makes the vectors of sequences and of tokens.
  void ApplyHeads(const Entries& entries, MatrixView<const float> result, EncoderRun& run);
  // Makes the sparse vectors of sequences.
  void WeighVocabulary(const Entries& entries, MatrixView<const float> result, EncoderRun& run);
  void FailAll(const Entries& entries, const absl::Status& status);
  // `counts` has what is known before.
  void TakeResults(const Entries& entries, MatrixView<const float> result, EncoderRun& run,
                   BatchCounts counts, BatchReport& report);

  const ServiceContext& context_;
  const int instance_;
  absl::Time free_since_;  // when the batch before had ended, but for its answers

  // The engine's view of the batch that runs now.
  std::vector<int32_t> cu_seqlens_;
  std::vector<const AttentionBias*> bias_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> selected_rows_;  // empty: all
  CrossKvRange cross_kv_rows_ = {};
  std::vector<CrossKv> cross_kv_;  // empty: all attend to themselves
  std::vector<HeadGates> head_gates_;
  std::vector<LinearState> states_;  // empty: none is a chunk of a sequence

  std::vector<HeadRow> head_rows_;  // of one head
  std::vector<VocabularySequence> vocabulary_sequences_;

  BatchCompleter completer_;
};

// A BatchExecutor for a thread of InstancePool.
RunBatch MakeRunner(const ServiceContext& context, int instance);

}  // namespace attendant::server
