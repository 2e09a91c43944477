// BlockBody: the computation of a residual block that follows the attention of a layer.
#pragma once

#include "engine/base/matrix_view.h"
#include "engine/layers/state/layer_run.h"

namespace attendant {

// The input rows of the first block of a layer.
struct BlockRows {
  PreparedRows entry;          // queries, keys and values are projected from these
  MatrixView<float> residual;  // the attention's output is added to these
};

// Immutable and thread-safe. All rows are [T, width].
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

}  // namespace attendant
