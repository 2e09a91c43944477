// LayerRun: what one layer computes of a batch, and where. BatchRun: makes one for each layer of a
// span.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/position_tables.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Matrices that a matrix product reads or writes have PaddedRows(T) rows, of which the first T are
// the kept rows and the others the tail. Every tail holds finite values: BatchRun::Begin zeroes
// the tails that no product writes, and the attention that of the context. Everything but matrix
// products works on the kept rows alone.
//
// Refers to what it names, and is cheap to copy. It does not change while a layer runs; only the
// workspace's buffers do.
struct LayerRun {
  // Whether probabilities of some sequence are wanted.
  bool WantsProbabilities() const;

  // Return the first T, or PaddedRows(T), rows of a buffer.
  MatrixView<float> Kept(MatrixView<float> buffer) const { return buffer.Rows(0, tokens); }
  MatrixView<float> Padded(MatrixView<float> buffer) const {
    return buffer.Rows(0, PaddedRows(tokens));
  }

  // Returns the start of a buffer as the PaddedRows(T) rows of a dense matrix of fewer columns.
  MatrixView<float> Narrow(MatrixView<float> buffer, int64_t cols) const {
    return {buffer.data, PaddedRows(tokens), cols, cols};
  }

  // Returns the operand of the kept rows [T, cols] that are about to be made, in the format that
  // products take; empty if no product reads rows of that width.
  PreparedOperand Prepare(int64_t cols) const {
    return workspace.gemm.Prepare(workspace.mode, cols, tokens);
  }

  // Returns the run of what follows the attention, over `rows` rows alone.
  LayerRun AfterAttention(int64_t rows) const {
    LayerRun after = *this;
    after.tokens = rows;
    return after;
  }

  Workspace& workspace;
  const PositionTables& tables;
  int64_t tokens = 0;  // T
  absl::Span<const AttentionSequence> sequences = {};
  // The queries that the attention computes: `sequences`, or the runs of neighbouring wanted rows.
  absl::Span<const AttentionSequence> queries = {};
  absl::Span<const int32_t> wanted_rows = {};  // if only their queries are computed; else empty
  absl::Span<const int32_t> positions = {};    // [T], from the first of each sequence; if rotary
  bool has_cross_kv = false;                   // the sequences attend to cross_kv
  int64_t layer = 0;
  std::optional<AttendStage> stage = {};  // to which the attention is computed; none: all blocks
  RunObserver* observer = nullptr;        // null where no layer of a span runs
};

// Not thread-safe. Keeps its memory from run to run.
class BatchRun {
 public:
  // All of them must outlive the run.
  BatchRun(const ModelDescription& model, Workspace& workspace, const PositionTables& tables)
      : model_(model), workspace_(workspace), tables_(tables) {}

  // Takes up a batch for a span that begins with `first_layer`. The batch and the observer must
  // live until its last layer has run. Errors of CheckBatch.
  absl::Status Begin(const PackedBatch& batch, int64_t first_layer, RunObserver& observer);

  // Returns the run of a layer, valid until the next call; to be called once for each layer of the
  // span, in order. Gives the sequences their gates and states for this layer and, if its attention
  // has probabilities, asks the observer for room for them. In the last layer of the span, the
  // attention has the queries of the wanted rows alone, if nothing else needs the other rows:
  // probabilities do, and sequences that come in parts, because they leave a state behind.
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
  std::vector<AttentionSequence> wanted_queries_;
  std::vector<int32_t> positions_;
};

}  // namespace attendant
