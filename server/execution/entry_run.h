// A BatchEntry while its batch is computed: a ComputeJob, or a slice of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/layers/encoder.h"
#include "server/base/fault.h"
#include "server/batching/waiting_jobs.h"
#include "server/execution/attention_response.h"
#include "server/execution/batch_report.h"
#include "server/execution/compute_job.h"
#include "server/execution/response.h"
#include "server/execution/row_gatherer.h"
#include "server/request/attention_bias.h"
#include "server/request/service_context.h"

namespace attendant::server {

class EntryRun;

// A sequence of an entry, or one of its tokens, that a head works on.
struct HeadRow {
  EntryRun* entry;
  int64_t index;
};

// Gathers the rows of its request, and writes its results into the response of the job, other
// slices at the same time into other elements. One thread.
class EntryRun {
 public:
  // The slice has been begun (ComputeJob::BeginSlice); Finish or Fail ends it. `context` outlives
  // this.
  EntryRun(std::shared_ptr<ComputeJob> job, const BatchEntry& entry, const ServiceContext& context);

  // Before Finish or Fail. The request is the job's, or a slice of it.
  const ComputeJob& job() const { return *job_; }
  const ComputeRequest& request() const { return slice_ ? *slice_ : job_->request(); }

  // Copies the kept rows to rows [first_row, …) of the run's input, those of cross-attention to
  // where `place` ends so far, and the bias. INVALID_ARGUMENT names the first value that is
  // refused.
  absl::Status Gather(EncoderRun& run, int64_t first_row, const CrossKvRange& place);

  bool nonfinite() const { return gatherer_.nonfinite(); }
  const GatheredBias* bias() const { return bias_ ? &*bias_ : nullptr; }
  // The same gates for every sequence.
  HeadGates gates() const;
  // The state of the sequence that the request is a chunk of; empty if it is none.
  LinearState state() const {
    StreamSequence* sequence = request().sequence();
    return sequence == nullptr ? LinearState() : sequence->state();
  }

  // Keys and values for a sequence of the request. `projected` has those of the whole batch.
  CrossKv CrossKvOf(const CrossKv& projected, int64_t sequence) const;

  // Of a RegisterMemory: copies its keys and values, which Finish registers.
  void TakeCrossKv(const CrossKv& projected);

  // The buffer for the probabilities of this layer and of a sequence; null: not wanted.
  float* ProbabilitiesTarget(int64_t layer, int64_t sequence);

  // These keep a problem, such as a lack of memory, for Finish; then the entry takes nothing more.

  // In a layer: takes its values [T of the batch, heads x Dv], if the response needs them.
  void TakeValues(MatrixView<const float> batch_rows);

  // After a layer: takes its probabilities and its output [T of the batch, width] into the
  // response, if asked for.
  void TakeProbabilities(int64_t layer);
  void TakeIntermediate(int64_t layer, MatrixView<const float> batch_rows);

  // After the run: takes the hidden states, and makes room for pooled vectors, if asked for.
  void TakeResult(MatrixView<const float> batch_rows);

  // After TakeResult: appends the rows that this head is to make for the response: of a sequence
  // each, or of a token. The others become zeros.
  void AppendHeadRows(HeadKind head, std::vector<HeadRow>& rows);
  // Writes what the head takes for one of them, and takes what it makes of it, which may change.
  // Several threads may do so for different rows at the same time.
  void FillHeadRow(HeadKind head, int64_t index, MatrixView<const float> batch_rows,
                   absl::Span<float> input) const;
  void TakeHeadRow(HeadKind head, int64_t index, absl::Span<float> output);

  // After the token head: appends the sequences to score by late interaction, and scores one of
  // them. Several threads may score different ones at the same time.
  void AppendScoredSequences(std::vector<HeadRow>& rows);
  void ScoreSequence(int64_t sequence);

  // Makes room for the sparse vectors if they are asked for, and appends the sequences to weigh the
  // vocabulary for. Rows are counted in the whole batch.
  void AppendVocabularySequences(std::vector<VocabularySequence>& sequences);

  // Keeps a problem of a head, if it is one, as the other steps do.
  void Refuse(const absl::Status& status) { status_.Update(status); }

  // Ends the slice, with the problem that came up meanwhile if there is one.
  void Finish(const BatchReport& report);
  void Fail(const absl::Status& status);
  bool ended() const { return job_ == nullptr; }

 private:
  // Runs a step, unless an earlier one has failed.
  template <typename Step>
  void Take(Step step) {
    if (status_.ok()) status_.Update(Guarded(step));
  }
  // The tensor in an optional one, which is empty at first.
  static ResponseTensor& TensorIn(std::optional<ResponseTensor>& tensor) {
    return tensor ? *tensor : tensor.emplace();
  }
  void AddPrefixTokens(const TokenLayout& features, MatrixView<float> rows, EncoderRun& run);
  // Returns the tensor that `find` returns of the job's response. The first slice makes it, as
  // large as the whole request needs it, and with zeros if not all elements will be written. Null,
  // with a problem in status_: it could not be made.
  ResponseTensor* MakeOnce(absl::FunctionRef<ResponseTensor&(Response&)> find,
                           std::vector<int64_t> shape, DataType dtype, bool zeroed = false);
  // Makes such a tensor of rows of this shape, and writes the kept `rows` into it.
  void PlaceRows(MatrixView<const float> rows, std::vector<int64_t> shape,
                 absl::FunctionRef<ResponseTensor&(Response&)> find);
  void PlaceAttention(int64_t layer, size_t index);
  void PlaceResult(MatrixView<const float> batch_rows);
  void AppendTokens(std::vector<HeadRow>& rows);
  void PlaceTokenVectors();
  // Whether the head that makes the pooled vectors takes each token by itself.
  bool pools_late(HeadKind head) const;
  // Makes the pooled vectors of what the head has made of the tokens.
  void PlaceLateMeans();
  void PlaceSparse();
  void PlaceProbabilities(int64_t layer, size_t index, DenseProbabilities dense);
  MatrixView<const float> RowsOf(MatrixView<const float> batch_rows) const;

  void End(absl::Duration queued, const absl::Status& status);

  const ServiceContext& context_;
  std::shared_ptr<ComputeJob> job_;      // null once the slice has ended
  std::optional<ComputeRequest> slice_;  // none: all sequences
  RowGatherer gatherer_;
  int64_t first_row_ = 0;
  int64_t first_cross_kv_row_ = 0;  // among the projected rows of the batch
  std::optional<GatheredBias> bias_;
  AlignedBuffer<float> probabilities_;  // of one layer: [H, length, keys] of each sequence
  std::vector<int64_t> pairs_before_;   // [B]: of a head, of the sequences before
  std::vector<float> values_;           // of one layer: [T, H Dv]
  ResponseTensor* pooled_ = nullptr;    // null if it is not wanted, or if there is no memory for it
  AlignedBuffer<float> late_;           // [T, classes] of a head that takes each token, or empty
  AlignedBuffer<float> token_vectors_;  // [T, P], or empty
  ResponseTensor* scores_ = nullptr;    // as pooled_
  std::vector<int32_t> scored_tokens_;  // those with a vector, ascending, if there are scores
  AlignedBuffer<float> sparse_;         // [B, V], or empty
  absl::Status status_;
};

}  // namespace attendant::server
