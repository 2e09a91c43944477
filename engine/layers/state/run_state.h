// The state of one instance, which it lends to the layers while they run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/rope.h"
#include "engine/layers/state/activations.h"
#include "engine/layers/state/batch.h"
#include "engine/model/model_description.h"

namespace attendant {

AttentionShape AttentionShapeOf(const LayerShape& layer, const ComputeMode& mode);

void ZeroRows(MatrixView<float> rows);

// Threads, buffers and scratch memory of an instance, and the batch that it works on. Not
// thread-safe.
//
// Matrices that a matrix product reads or writes have PaddedRows(T) rows. Begin, and for the
// context the attention, zero the tails that no product writes, so that every tail holds finite
// values. Everything else works on the kept rows alone.
struct RunState {
  // Prepares for batches of up to `capacity` tokens.
  RunState(const ModelDescription& model, int64_t capacity, int threads,
           const ComputeMode& compute_mode = {});

  // Returns the size of the buffers, and of the kernels' scratch memory at most.
  static CheckedSize Bytes(const ModelDescription& model, int64_t capacity, int threads,
                           const ComputeMode& mode);
  int64_t bytes() const {
    return activations.bytes() + gemm.operand_bytes() + scratch_bytes + table_bytes();
  }

  // Returns where to write a model's relative positions, once before the first batch.
  MatrixView<float> distance_table();
  // Returns what relative positions add to the scores of every sequence, or null.
  const AttentionBias* distances() const;
  // Returns `projections` with the table that maps distances to their rows.
  RelativeScores WithDistanceRows(RelativeScores projections) const;

  const RotaryTable& rotary_table(float theta) const;

  // Starts a batch. Returns INVALID_ARGUMENT if it is not a valid packed batch, and
  // RESOURCE_EXHAUSTED if T > max_tokens.
  absl::Status Begin(const PackedBatch& batch);

  // Called before each layer of a span. Sets up its sequences, with their gates in this layer and,
  // if its attention has probabilities, where to write them.
  void BeginLayer(int64_t next, int64_t first_layer, const PackedBatch& batch,
                  RunObserver& watcher);

  // Returns true if probabilities of the current layer are wanted.
  bool WantsProbabilities() const;

  // Returns true if some rows of the current layer, which must be the last, need not be computed.
  // All are computed if probabilities are wanted, and if sequences come in parts, because each row
  // then changes the state of its sequence.
  bool CanSkipRows(const PackedBatch& batch) const;

  // Makes the wanted rows the only queries of the attention from here on.
  void NarrowQueries(const PackedBatch& batch);

  // Moves the rows to the front, and zeroes the tail after them that a product reads.
  static MatrixView<float> Compact(absl::Span<const int32_t> rows, MatrixView<float> buffer);
  // Moves the rows back to where they were.
  static void Expand(absl::Span<const int32_t> rows, MatrixView<float> buffer);

  // Return the first T, or PaddedRows(T), rows of a buffer.
  MatrixView<float> Kept(MatrixView<float> buffer) const { return buffer.Rows(0, tokens); }
  MatrixView<float> Padded(MatrixView<float> buffer) const {
    return buffer.Rows(0, PaddedRows(tokens));
  }

  // The PaddedRows(count) rows of inputs from `first` on, with zeros behind `count`.
  MatrixView<float> CrossKvInput(int64_t first, int64_t count);

  // Returns the start of a buffer as the PaddedRows(T) rows of a dense matrix of fewer columns.
  MatrixView<float> Narrow(MatrixView<float> buffer, int64_t cols) const {
    return {buffer.data, PaddedRows(tokens), cols, cols};
  }

  // Returns the operand to write along with the kept rows that are about to be made, for `reader`,
  // the product that reads them next. It is empty without a reader.
  PreparedOperand Prepare(const PackedLinear* reader);

  // Computes y = activation(x W^T + b).
  void Apply(const PackedLinear& linear, const LinearInput& x, MatrixView<float> y,
             Activation activation = Activation::kIdentity);

  // Computes target [rows, E] = x W^T + b, where x are the first `rows` rows of embedded().
  void ProjectEmbedded(const PackedLinear& linear, MatrixView<float> target);

  const int64_t max_tokens;
  const ComputeMode mode;
  const ThreadTeam team;
  Activations activations;
  GemmWorkspace gemm;
  AttentionWorkspace attention;
  const int64_t scratch_bytes;  // an upper bound

  int64_t tokens = 0;         // T
  bool has_cross_kv = false;  // the batch's sequences attend to cross_kv
  std::vector<AttentionSequence> sequences;
  absl::Span<const int32_t> wanted_rows;  // the only queries, after NarrowQueries; else empty
  int64_t layer = 0;                      // the current layer
  RunObserver* observer = nullptr;
  AlignedBuffer<float> distance_bias;      // [H, DistanceColumns(max_tokens)], or empty
  std::vector<int32_t> distance_rows;      // [DistanceColumns(max_tokens)] if disentangled
  std::vector<RotaryTable> rotary_tables;  // one for each theta of the model's layers
  std::vector<int32_t> positions;          // [T], from the first of each sequence; if rotary
  int64_t fully_masked_rows = 0;

 private:
  int64_t table_bytes() const;
  void TakePositions(const PackedBatch& batch);

  AttentionSequence SequenceOf(const PackedBatch& batch, int64_t i) const;

  bool scores_pairs_;
  std::string why_no_states_;
  int64_t layer_state_size_;
  int64_t mixed_positions_;
  int64_t heads_;
  int64_t span_index_ = 0;  // index of the current layer in the span
  std::optional<AttentionBias> distances_;
};

}  // namespace attendant
