// LayerExtra: a part of a layer around its attention and feed-forward blocks that only a few models
// have.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"

namespace attendant {

// The rows that the blocks of a layer begin with.
struct BlockRows {
  PreparedRows entry;          // what queries, keys and values are made of
  MatrixView<float> residual;  // what the attention's output is added to
};

// Thread-safe once loaded, apart from VisitNorms. Rows are [PaddedRows(T), width].
class LayerExtra {
 public:
  virtual ~LayerExtra() = default;

  // Begins a layer with the input x, before anything is added to it. `is_whole` is false if the
  // layer will end behind its attention, without Leave.
  virtual BlockRows Enter(MatrixView<float> x, bool is_whole, const LayerRun& run) const = 0;

  // Moves what Leave reads of the wanted rows of x, and of this part's own buffers, to the first
  // rows. Called, if at all, between Enter and Leave.
  virtual void KeepRows(absl::Span<const int32_t> rows, MatrixView<float> x,
                        const LayerRun& run) const = 0;

  // Ends the layer: returns its output, made of the input x and of `inside`, the output of the
  // blocks.
  virtual MatrixView<float> Leave(MatrixView<float> x, const PreparedRows& inside,
                                  const LayerRun& run) const = 0;

  // The product that reads the output of the blocks, or null; see LayerRun::Prepare.
  virtual const PackedLinear* exit() const = 0;

  // Calls `visit` for each norm, which it may change.
  virtual void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) = 0;
  virtual std::unique_ptr<LayerExtra> Clone() const = 0;

  // Reserves the memory that the products need for the largest batch of the run.
  virtual void ReserveScratch(Workspace& workspace) const = 0;
  virtual int64_t bytes() const = 0;
};

}  // namespace attendant
