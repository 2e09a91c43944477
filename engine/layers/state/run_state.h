// RunState: the threads, buffers and current batch of one instance, which the layers use as they
// run.
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

// Returns the shape that the attention kernels take for a layer.
AttentionShape AttentionShapeOf(const LayerShape& layer, const ComputeMode& mode);

// Fills all elements of the rows with zeros.
void ZeroRows(MatrixView<float> rows);

// The threads, buffers and scratch memory of an instance, and the batch that it computes. Not
// thread-safe.
//
// Matrices that a matrix product reads or writes have PaddedRows(T) rows, of which the first T are
// the kept rows and the others the tail. Begin zeroes the tails that no product writes, and the
// attention that of the context, so that every tail holds finite values. Everything but matrix
// products works on the kept rows alone.
struct RunState {
  // Allocates for batches of up to `capacity` tokens.
  RunState(const ModelDescription& model, int64_t capacity, int threads,
           const ComputeMode& compute_mode = {});

  // Bytes of the buffers, and the largest number of bytes of the kernels' scratch memory.
  static CheckedSize Bytes(const ModelDescription& model, int64_t capacity, int threads,
                           const ComputeMode& mode);
  int64_t bytes() const {
    return activations.bytes() + gemm.operand_bytes() + scratch_bytes + table_bytes();
  }

  // Room for the model's relative positions [H, DistanceColumns(max_tokens)], which are written
  // once, before the first batch.
  MatrixView<float> distance_table();
  // The bias that they add to the scores of every sequence, or null if the model has none.
  const AttentionBias* distances() const;
  // Returns `projections` together with the table that gives each distance its row of them.
  RelativeScores WithDistanceRows(RelativeScores projections) const;

  // The angles for one theta of the model's layers.
  const RotaryTable& rotary_table(float theta) const;

  // Checks a batch and takes it up. INVALID_ARGUMENT: it is no packed batch, or has something that
  // the model cannot take. RESOURCE_EXHAUSTED: T > max_tokens.
  absl::Status Begin(const PackedBatch& batch);

  // Must be called before each layer `next` of a span that begins with first_layer. Sets up the
  // sequences with their gates and states for this layer and, if its attention has probabilities,
  // asks `watcher` for room for them.
  void BeginLayer(int64_t next, int64_t first_layer, const PackedBatch& batch,
                  RunObserver& watcher);

  // Whether probabilities of the current layer are wanted.
  bool WantsProbabilities() const;

  // Whether some rows of the current layer need not be computed, if it is the last one of the span.
  // Where sequences come in parts, all rows are computed, because they leave a state behind.
  bool CanSkipRows(const PackedBatch& batch) const;

  // Restricts attention to the queries of the wanted rows, until the next BeginLayer.
  void NarrowQueries(const PackedBatch& batch);

  // Moves `rows` of the buffer to its first rows, and zeroes the tail that a product reads after
  // them.
  static MatrixView<float> Compact(absl::Span<const int32_t> rows, MatrixView<float> buffer);
  // Moves the first rows of the buffer back to `rows`, where Compact took them from.
  static void Expand(absl::Span<const int32_t> rows, MatrixView<float> buffer);

  // Return the first T, or PaddedRows(T), rows of a buffer.
  MatrixView<float> Kept(MatrixView<float> buffer) const { return buffer.Rows(0, tokens); }
  MatrixView<float> Padded(MatrixView<float> buffer) const {
    return buffer.Rows(0, PaddedRows(tokens));
  }

  // The PaddedRows(count) rows of key_input() and value_input() (encoder.h) from `first` on, after
  // zeroing those beyond the first `count`.
  MatrixView<float> CrossKvInput(int64_t first, int64_t count);

  // Returns the start of a buffer as the PaddedRows(T) rows of a dense matrix of fewer columns.
  MatrixView<float> Narrow(MatrixView<float> buffer, int64_t cols) const {
    return {buffer.data, PaddedRows(tokens), cols, cols};
  }

  // Returns the operand of the kept rows that are about to be made, in the format that the next
  // product, `reader`, takes; empty if `reader` is null.
  PreparedOperand Prepare(const PackedLinear* reader);

  // Computes y = activation(x W^T + b).
  void Apply(const PackedLinear& linear, const LinearInput& x, MatrixView<float> y,
             Activation activation = Activation::kIdentity);

  // Computes target [rows, E] = x W^T + b, where x is the first `rows` rows of
  // activations.embedded().
  void ProjectEmbedded(const PackedLinear& linear, MatrixView<float> target);

  const int64_t max_tokens;
  const ComputeMode mode;
  const ThreadTeam team;
  Activations activations;
  GemmWorkspace gemm;
  AttentionWorkspace attention;
  const int64_t scratch_bytes;  // the kernels' scratch memory, at most

  int64_t tokens = 0;         // T
  bool has_cross_kv = false;  // the batch's sequences attend to cross_kv
  std::vector<AttentionSequence> sequences;
  absl::Span<const int32_t> wanted_rows;   // the only queries after NarrowQueries; else empty
  int64_t layer = 0;                       // the current layer
  RunObserver* observer = nullptr;         // watches the current layer
  AlignedBuffer<float> distance_bias;      // [H, DistanceColumns(max_tokens)], or of size 0
  std::vector<int32_t> distance_rows;      // [DistanceColumns(max_tokens)], if disentangled
  std::vector<RotaryTable> rotary_tables;  // one for each theta of the model's layers
  std::vector<int32_t> positions;  // [T], counted from the first of each sequence; if rotary
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
  int64_t span_index_ = 0;  // the current layer's index in its span
  std::optional<AttentionBias> distances_;
};

}  // namespace attendant
