// EntryRun, a BatchEntry (a ComputeJob or a slice of it) while its batch is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/layers/encoder.h"
#include "server/base/fault.h"
#include "server/batching/waiting_jobs.h"
#include "server/execution/attention_response.h"
#include "server/execution/batch_report.h"
#include "server/execution/compute_job.h"
#include "server/execution/response.h"
#include "server/request/attention_bias.h"
#include "server/request/service_context.h"

namespace attendant::server {

class EntryRun;

// A sequence of an entry, or one of its tokens, as input of a head.
struct HeadRow {
  EntryRun* entry;
  int64_t index;
};

// Gathers the rows of its request and writes its results into the job's response, while other
// slices write other elements. Not thread-safe.
class EntryRun {
 public:
  // The slice must have begun (ComputeJob::BeginSlice); Finish or Fail ends it. `context` must
  // outlive this object.
  EntryRun(std::shared_ptr<ComputeJob> job, const BatchEntry& entry, const ServiceContext& context);

  // Valid before Finish or Fail. The request is the job's, or a slice of it.
  const ComputeJob& job() const { return *job_; }
  const ComputeRequest& request() const { return slice_ ? *slice_ : job_->request(); }

  // Copies the kept rows to rows [first_row, …) of the run's input, those of cross-attention to the
  // current end of `place`, and the bias. Returns INVALID_ARGUMENT for the first refused value.
  absl::Status Gather(EncoderRun& run, int64_t first_row, const CrossKvRange& place);

  // Whether any gathered value was not finite.
  bool nonfinite() const { return nonfinite_; }
  const GatheredBias* bias() const { return bias_ ? &*bias_ : nullptr; }
  // The gates, equal for every sequence.
  HeadGates gates() const;
  // The state of the sequence of which the request is a chunk; empty if it is not one.
  LinearState state() const {
    StreamSequence* sequence = request().sequence();
    return sequence == nullptr ? LinearState() : sequence->state();
  }

  // Keys and values for a sequence of the request. `projected` holds the whole batch's.
  CrossKv CrossKvOf(const CrossKv& projected, int64_t sequence) const;

  // For a RegisterMemory: copies its keys and values, which Finish registers.
  void TakeCrossKv(const CrossKv& projected);

  // The buffer for this layer's probabilities of a sequence; null if not requested.
  float* ProbabilitiesTarget(int64_t layer, int64_t sequence);

  // These functions record errors, such as lack of memory, for Finish; the entry then ignores
  // further results.

  // During a layer: copies its values [T of the batch, heads x Dv] if the response needs them.
  void TakeValues(MatrixView<const float> batch_rows);

  // After a layer: copies its probabilities and its output [T of the batch, width] into the
  // response if requested.
  void TakeProbabilities(int64_t layer);
  void TakeIntermediate(int64_t layer, MatrixView<const float> batch_rows);

  // After the run: copies the hidden states and allocates pooled vectors, if requested.
  void TakeResult(MatrixView<const float> batch_rows);

  // After TakeResult: appends the rows that this head computes for the response, one per sequence
  // or token. Other rows become zeros.
  void AppendHeadRows(HeadKind head, std::vector<HeadRow>& rows);
  // Writes the head's input for a row, and takes its output, which may change. Different rows may
  // be handled on several threads at the same time.
  void FillHeadRow(HeadKind head, int64_t index, MatrixView<const float> batch_rows,
                   absl::Span<float> input) const;
  void TakeHeadRow(HeadKind head, int64_t index, absl::Span<float> output);

  // After the token head: appends the sequences to score by late interaction, and scores one of
  // them. Several threads may score different ones at the same time.
  void AppendScoredSequences(std::vector<HeadRow>& rows);
  void ScoreSequence(int64_t sequence);

  // Allocates sparse vectors if requested, and appends the sequences for the vocabulary head. Rows
  // are counted in the whole batch.
  void AppendVocabularySequences(std::vector<VocabularySequence>& sequences);

  // Records an error of a head like the other steps.
  void Refuse(const absl::Status& status) { status_.Update(status); }

  // Ends the slice, with an error if one was recorded.
  void Finish(const BatchReport& report);
  void Fail(const absl::Status& status);
  bool ended() const { return job_ == nullptr; }

 private:
  // Runs a step unless an earlier one failed.
  template <typename Step>
  void Take(Step step) {
    if (status_.ok()) status_.Update(Guarded(step));
  }
  void AddPrefixTokens(const TokenLayout& features, MatrixView<float> rows, EncoderRun& run);
  // Returns a tensor of the job's response. The first slice allocates it for the whole request,
  // zeroed if not all elements will be written. Returns null, with an error in status_, if it
  // cannot be allocated.
  ResponseTensor* MakeOnce(OutputKind kind, int64_t layer = 0, bool zeroed = false);
  // Writes the kept `rows` into such a tensor.
  void PlaceRows(MatrixView<const float> rows, OutputKind kind, int64_t layer = 0);
  void PlaceAttention(int64_t layer);
  void PlaceResult(MatrixView<const float> batch_rows);
  void AppendTokens(std::vector<HeadRow>& rows);
  // Whether the head of pooled vectors processes each token by itself.
  bool pools_late(HeadKind head) const;
  // Computes pooled vectors from the head's outputs for tokens.
  void PlaceLateMeans();
  void PlaceSparse();
  void PlaceProbabilities(int64_t layer, DenseProbabilities dense);
  MatrixView<const float> RowsOf(MatrixView<const float> batch_rows) const;

  void End(absl::Duration queued, const absl::Status& status);

  const ServiceContext& context_;
  std::shared_ptr<ComputeJob> job_;      // null once the slice has ended
  std::optional<ComputeRequest> slice_;  // not set: all sequences
  bool nonfinite_ = false;
  int64_t first_row_ = 0;
  int64_t first_cross_kv_row_ = 0;  // among the batch's projected rows
  std::optional<GatheredBias> bias_;
  AlignedBuffer<float> probabilities_;  // of one layer: [H, length, keys] per sequence
  std::vector<int64_t> pairs_before_;   // [B]: pairs of one head in earlier sequences
  std::vector<float> values_;           // of one layer: [T, H Dv]
  ResponseTensor* pooled_ = nullptr;    // null if not requested or without memory
  AlignedBuffer<float> late_;           // [T, classes] of a head applied to each token, or empty
  AlignedBuffer<float> token_vectors_;  // [T, P], or empty
  ResponseTensor* scores_ = nullptr;    // like pooled_
  std::vector<int32_t> scored_tokens_;  // tokens with a vector, ascending, if there are scores
  AlignedBuffer<float> sparse_;         // [B, V], or empty
  absl::Status status_;
};

}  // namespace attendant::server
