// What one instance lends to the layers while they run.
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
// Matrices that a matrix product reads or writes have PaddedRows(T) rows; Begin, and for the
// context the attention, zero the tails that no product writes, so that every tail holds finite
// values. Everything else works on the kept rows alone.
struct RunState {
  // For batches of up to `capacity` tokens.
  RunState(const ModelDescription& model, int64_t capacity, int threads,
           const ComputeMode& compute_mode = {});

  // Of the buffers, and of the kernels' scratch memory at most.
  static CheckedSize Bytes(const ModelDescription& model, int64_t capacity, int threads,
                           const ComputeMode& mode);
  int64_t bytes() const {
    return activations.bytes() + gemm.operand_bytes() + scratch_bytes + table_bytes();
  }

  // Where a model's relative positions go, once, before the first batch.
  MatrixView<float> distance_table();
  // What they add to the scores of every sequence; or null.
  const AttentionBias* distances() const;
  // The same projections, and which of their rows a distance has.
  RelativeScores WithDistanceRows(RelativeScores projections) const;

  const RotaryTable& rotary_table(float theta) const;

  // Takes up a batch. INVALID_ARGUMENT: not a packed batch. RESOURCE_EXHAUSTED: T > max_tokens.
  absl::Status Begin(const PackedBatch& batch);

  // Comes before each layer of a span: its sequences, with their gates in it, and where its
  // probabilities shall go, if its attention has some.
  void BeginLayer(int64_t next, int64_t first_layer, const PackedBatch& batch,
                  RunObserver& watcher);

  // Whether anybody asked for probabilities of the layer that has begun.
  bool WantsProbabilities() const;

  // Whether some rows of the layer that has begun, the last one, need not be computed. Where parts
  // of sequences leave something behind, all are.
  bool CanSkipRows(const PackedBatch& batch) const;

  // Attention of the wanted rows alone, from here on.
  void NarrowQueries(const PackedBatch& batch);

  // Moves the rows to the front, and zeroes the tail that a product reads behind them.
  static MatrixView<float> Compact(absl::Span<const int32_t> rows, MatrixView<float> buffer);
  // Moves them back to where they were.
  static void Expand(absl::Span<const int32_t> rows, MatrixView<float> buffer);

  // The first T, or PaddedRows(T), rows of a buffer.
  MatrixView<float> Kept(MatrixView<float> buffer) const { return buffer.Rows(0, tokens); }
  MatrixView<float> Padded(MatrixView<float> buffer) const {
    return buffer.Rows(0, PaddedRows(tokens));
  }

  // The PaddedRows(count) rows of inputs from `first` on, with zeros behind `count`.
  MatrixView<float> CrossKvInput(int64_t first, int64_t count);

  // The start of a buffer as the PaddedRows(T) rows of a dense matrix of fewer columns.
  MatrixView<float> Narrow(MatrixView<float> buffer, int64_t cols) const {
    return {buffer.data, PaddedRows(tokens), cols, cols};
  }

  // What `reader`, the product that comes next, reads of the kept rows that are about to be made;
  // of nothing without one.
  PreparedOperand Prepare(const PackedLinear* reader);

  // y = activation(x W^T + b).
  void Apply(const PackedLinear& linear, const LinearInput& x, MatrixView<float> y,
             Activation activation = Activation::kIdentity);

  // target [rows, E] = x W^T + b of the first `rows` rows of embedded().
  void ProjectEmbedded(const PackedLinear& linear, MatrixView<float> target);

  const int64_t max_tokens;
  const ComputeMode mode;
  const ThreadTeam team;
  Activations activations;
  GemmWorkspace gemm;
  AttentionWorkspace attention;
  const int64_t scratch_bytes;  // at most

  int64_t tokens = 0;         // T
  bool has_cross_kv = false;  // the batch's sequences attend to cross_kv
  std::vector<AttentionSequence> sequences;
  absl::Span<const int32_t> wanted_rows;  // the only queries, if NarrowQueries made them so
  int64_t layer = 0;                      // that has begun, and who watches it
  RunObserver* observer = nullptr;
  AlignedBuffer<float> distance_bias;      // [H, DistanceColumns(max_tokens)], or of size 0
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
  int64_t span_index_ = 0;  // of the layer that has begun
  std::optional<AttentionBias> distances_;
};

}  // namespace attendant
