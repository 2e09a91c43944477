// LayerRun: the inputs, buffers and options of one layer's computation for a batch. BatchRun:
// creates the LayerRun of each layer of a span.
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
