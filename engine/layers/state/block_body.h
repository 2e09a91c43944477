// BlockBody: what a residual block of a layer computes after its attention.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"

namespace attendant {

// The rows that the first block of a layer begins with.
struct BlockRows {
  PreparedRows entry;          // what queries, keys and values are made of
  MatrixView<float> residual;  // what the attention's output is added to
};

// Immutable and thread-safe once loaded, apart from VisitNorms. Rows are [PaddedRows(T), width].
//
// The last block of a layer may also have a part before the first one: Begin. The layer's input is
// then in activations.hidden().
class BlockBody {
 public:
  virtual ~BlockBody() = default;

  // Begins a layer, before anything is added to its input, which is rows.entry and rows.residual.
  virtual void Begin(BlockRows& /*rows*/, const LayerRun& /*run*/) const {}

  // Moves what Residual and Forward read of the run's wanted rows, apart from x, to the first rows.
  // Called, if at all, between Begin and Forward, of blocks that are the last of their layer.
  virtual void KeepWantedRows(const LayerRun& /*run*/) const {}

  // Returns the rows that the branch is added to: x, the output of the block before, or others.
  virtual MatrixView<float> Residual(MatrixView<float> x, const LayerRun& /*run*/) const {
    return x;
  }

  // Returns the branch, made of x, in a buffer that does not overlap Residual.
  virtual MatrixView<float> Forward(const LinearInput& x, const LayerRun& run) const = 0;

  // Calls `visit` for each norm within the body, which it may change.
  virtual void VisitNorms(absl::FunctionRef<void(NormParameters&)> /*visit*/) {}
  virtual std::unique_ptr<BlockBody> Clone() const = 0;

  // Reserves the memory that the products need for the largest batch of the run.
  virtual void ReserveScratch(Workspace& workspace) const = 0;
  virtual int64_t bytes() const = 0;
};

}  // namespace attendant
