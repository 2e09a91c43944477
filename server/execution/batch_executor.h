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

// Gathers, runs and scatters batches, and passes the results to the completer. Not thread-safe.
class BatchExecutor {
 public:
  // Computes with this instance's run of each model, on `thread_plan.threads_per_instance` threads.
  // Create it on the instance's thread, which it binds to the instance's node.
  BatchExecutor(const ServiceContext& context, int instance);

  // Computes and completes the jobs of the non-empty `batch`, which must be ComputeJobs. Jobs that
  // cannot be computed fail. Does not throw.
  void Run(const Batch& batch);

 private:
  using Entries = std::vector<EntryRun*>;  // in the order of their rows

  // Returns the entries of jobs that have not failed.
  std::vector<EntryRun> Begin(const Batch& batch);
  void RunEntries(std::vector<EntryRun>& batch, BatchClose close, EncoderRun& run);
  Entries Gather(std::vector<EntryRun>& batch, EncoderRun& run);
  // Returns the range for cross-attention rows, after the hidden states: keys, then values if any.
  // The rows are not yet gathered.
  static CrossKvRange PlaceCrossKv(const std::vector<EntryRun>& batch);
  void Describe(const Entries& entries);
  absl::Status ProjectCrossKv(const Entries& entries, EncoderRun& run);
  absl::StatusOr<MatrixView<const float>> RunEngine(const Entries& entries, EncoderRun& run);
  // Applies the heads to sequences and tokens.
  void ApplyHeads(const Entries& entries, MatrixView<const float> result, EncoderRun& run);
  // Computes the sparse vectors of sequences.
  void WeighVocabulary(const Entries& entries, MatrixView<const float> result, EncoderRun& run);
  void FailAll(const Entries& entries, const absl::Status& status);
  void TakeResults(const Entries& entries, MatrixView<const float> result, EncoderRun& run,
                   BatchClose close, BatchReport& report);

  const ServiceContext& context_;
  const int instance_;
  absl::Time free_since_;  // when the previous batch ended, except for its responses

  // The engine's view of the current batch.
  std::vector<int32_t> cu_seqlens_;
  std::vector<const AttentionBias*> bias_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> selected_rows_;  // empty: all
  CrossKvRange cross_kv_rows_ = {};
  std::vector<CrossKv> cross_kv_;  // empty: every sequence attends to itself
  std::vector<HeadGates> head_gates_;
  std::vector<LinearState> states_;  // empty: no sequence is a chunk

  std::vector<HeadRow> head_rows_;  // of one head
  std::vector<VocabularySequence> vocabulary_sequences_;

  BatchCompleter completer_;
};

// A BatchExecutor for a thread of InstancePool.
RunBatch MakeRunner(const ServiceContext& context, int instance);

}  // namespace attendant::server
