// A job while its batch is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/layers/encoder.h"
#include "server/execution/answer.h"
#include "server/execution/attention_answer.h"
#include "server/execution/encode_job.h"
#include "server/request/attention_bias.h"

namespace attendant::server {

// Owns the job until it is answered. One thread.
class BatchJob {
 public:
  explicit BatchJob(std::unique_ptr<EncodeJob> job) : job_(std::move(job)) {}

  // False once the job has been answered or failed.
  bool open() const { return job_ != nullptr; }
  const EncodeJob& job() const { return *job_; }
  const ComputeRequest& request() const { return job_->request(); }

  // Copies the kept rows to rows [first_row, …) of the run's input, those of the memory to where
  // `memory` ends so far, and the bias. INVALID_ARGUMENT names the first value that is refused;
  // only with `reject_nonfinite` are hidden states looked at in this way.
  absl::Status Gather(EncoderRun& run, int64_t first_row, const CrossKvRows& memory,
                      bool reject_nonfinite);

  bool nonfinite() const { return nonfinite_; }
  const GatheredBias* bias() const { return bias_ ? &*bias_ : nullptr; }
  // Of every sequence of the job.
  HeadGates gates() const;
  // Of the sequence that the job is a part of, if it is one of a sequence.
  LinearState state() const {
    return request().part_of == nullptr ? LinearState() : request().part_of->state();
  }

  // What a sequence of this job attends to, where `projected` is that of all rows of memory.
  CrossKv MemoryOf(const CrossKv& projected, int64_t sequence) const;
  // Of PutMemory: copies its rows of memory.
  void KeepMemory(const CrossKv& projected);

  // Where the engine shall put the probabilities of this layer and sequence (of this job), or null.
  float* ProbabilitiesTarget(int64_t layer, int64_t sequence);

  // In a layer: takes its values [T of the batch, heads x Dv], if what is answered needs them.
  void TakeValues(MatrixView<const float> batch_rows);

  // After a layer: takes its probabilities and its output [T of the batch, width] into the answer,
  // if asked for. A problem of this and of TakeResult is kept for Finish.
  void TakeProbabilities(int64_t layer);
  void TakeIntermediate(int64_t layer, MatrixView<const float> batch_rows);

  // After the run: hidden states, and vectors that `encoder`, which computed them, pools.
  void TakeResult(MatrixView<const float> batch_rows, const Encoder& encoder);

  // Answers, or fails with the problem that came up meanwhile. What is to be kept, `memories`
  // takes.
  void Finish(const BatchTimings& timings, MemoryStore& memories);
  void Fail(const absl::Status& status);

 private:
  // A tensor of the request and which of its rows are kept.
  struct NamedRows {
    const char* field;
    const CheckedTensor& tensor;
    const TokenLayout& layout;
  };

  absl::Status GatherRows(const NamedRows& from, MatrixView<float> rows, bool reject_nonfinite);
  absl::Status GatherMemory(EncoderRun& run, const CrossKvRows& memory, bool reject_nonfinite);
  void AddFronts(MatrixView<float> rows, EncoderRun& run);
  std::optional<AnswerTensor> MakeTensor(std::vector<int64_t> shape);
  std::optional<AnswerTensor> MakeTensor(std::vector<int64_t> shape, DataType dtype);
  void PlaceProbabilities(int64_t layer, size_t index, DenseProbabilities dense);
  void TakePooled(MatrixView<const float> rows, const Encoder& encoder);
  MatrixView<const float> OwnRows(MatrixView<const float> batch_rows) const;

  std::unique_ptr<EncodeJob> job_;
  int64_t first_row_ = 0;
  int64_t first_memory_row_ = 0;  // of those of the batch
  bool nonfinite_ = false;
  std::optional<GatheredBias> bias_;
  AlignedBuffer<float> probabilities_;  // of one layer: [H, length, keys] of each sequence
  std::vector<int64_t> pairs_before_;   // [B]: of a head, of the sequences before
  std::vector<float> values_;           // of one layer: [T, H Dv]
  Answer answer_;
  absl::Status status_;
};

}  // namespace attendant::server
