// LayerRun: the inputs, buffers and options of one layer's computation for a batch. BlockBody: a
// computation of a layer. BatchRun: creates the LayerRun of each layer of a span.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/position_tables.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Cheap to copy: refers to the workspace and tables without owning them. Only the buffers of the
// workspace change while a layer runs.
struct LayerRun {
  // Whether probabilities of any sequence are requested.
  bool WantsProbabilities() const;

  // Returns the first T rows of a buffer.
  MatrixView<float> Kept(MatrixView<float> buffer) const { return buffer.Rows(0, tokens); }

  // Reinterprets the start of a buffer as a dense matrix [T, cols].
  MatrixView<float> Narrow(MatrixView<float> buffer, int64_t cols) const {
    return {buffer.data, tokens, cols, cols};
  }

  // Returns the buffer for the GEMM input of kept rows [T, cols] that are about to be computed. It
  // is empty if no product reads packed rows of this width.
  PackedInput Prepare(int64_t cols) const { return workspace.gemm.Prepare(cols, tokens); }

  // Returns a run over the first `rows` rows, for the blocks that follow the attention.
  LayerRun AfterAttention(int64_t rows) const {
    LayerRun after = *this;
    after.tokens = rows;
    return after;
  }

  Workspace& workspace;
  const PositionTables& tables;
  int64_t tokens = 0;  // T
  absl::Span<const AttentionSequence> sequences = {};
  // The queries that the attention computes: `sequences`, or ranges of adjacent selected rows.
  absl::Span<const AttentionSequence> queries = {};
  absl::Span<const int32_t> selected_rows = {};  // empty unless only these queries are computed
  absl::Span<const int32_t> positions = {};      // [T], relative to the sequence; only for rotary
  bool has_cross_kv = false;                     // the sequences attend to cross_kv
  int64_t layer = 0;
  std::optional<AttendStage> stage = {};  // where to stop; if empty, the whole layer is computed
  RunObserver* observer = nullptr;        // null outside a span of layers
};

// The input rows of the first block of a layer.
struct BlockRows {
  PreparedRows entry;          // queries, keys and values are projected from these
  MatrixView<float> residual;  // the attention's output is added to these
};

// The computation of a residual block that follows the attention of a layer. Immutable and
// thread-safe. All rows are [T, width].
//
// The last block of a layer may also compute something before the first block, in Begin. The
// layer's input is then in activations.hidden().
class BlockBody {
 public:
  virtual ~BlockBody() = default;

  // Called at the start of a layer, when rows.entry and rows.residual are the layer's input. May
  // replace either.
  virtual void Begin(BlockRows& /*rows*/, const LayerRun& /*run*/) const {}

  // Moves the run's selected rows to the front of every buffer that Residual and Forward read,
  // apart from x. Called only for the last block of a layer, between Begin and Forward, and only if
  // the run has selected rows.
  virtual void KeepSelectedRows(const LayerRun& /*run*/) const {}

  // Returns the rows that the branch is added to. By default they are x, the output of the previous
  // block.
  virtual MatrixView<float> Residual(MatrixView<float> x, const LayerRun& /*run*/) const {
    return x;
  }

  // Computes the branch from x. Returns it in a buffer that does not overlap Residual.
  virtual MatrixView<float> Forward(const LinearInput& x, const LayerRun& run) const = 0;
};

// Reuses its memory from run to run. Not thread-safe.
class BatchRun {
 public:
  // The arguments must outlive this object.
  BatchRun(const ModelDescription& model, Workspace& workspace, const PositionTables& tables)
      : model_(model), workspace_(workspace), tables_(tables) {}

  // Begins a span of layers from `first_layer` on. The batch and the observer must outlive the run
  // of the last layer. Returns the errors of CheckBatch.
  absl::Status Begin(const PackedBatch& batch, int64_t first_layer, RunObserver& observer);

  // Returns the run of a layer, valid until the next call. Call it once for each layer of the span,
  // in order. Sets the gates and states of the sequences for this layer and, if its attention has
  // probabilities, asks the observer for buffers for them. In the last layer of the span, only the
  // queries of selected rows are computed, unless other rows are needed too: for probabilities, or
  // for the state of a sequence that is computed chunk by chunk.
  LayerRun Layer(int64_t layer, bool is_last);

 private:
  AttentionSequence SequenceOf(int64_t i, int64_t span_index) const;
  bool NeedsOtherRows(const LayerRun& run) const;
  void NarrowQueries(int64_t span_index);
  void TakePositions();

  const ModelDescription& model_;
  Workspace& workspace_;
  const PositionTables& tables_;
  const PackedBatch* batch_ = nullptr;
  int64_t first_layer_ = 0;
  RunObserver* observer_ = nullptr;
  std::vector<AttentionSequence> sequences_;
  std::vector<AttentionSequence> selected_queries_;
  std::vector<int32_t> positions_;
};

}  // namespace attendant
