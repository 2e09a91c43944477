// FeedForward: the position-wise feed-forward block of a layer: Vaswani et al. 2017, section 3.3;
// with a gate, Shazeer 2020.
#pragma once

#include <string>

#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/block_body.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe. E is the width of the block's input and output, F its inner width.
class FeedForward : public BlockBody {
 public:
  // Reads and packs the weights whose names begin with `prefix`.
  FeedForward(const std::string& prefix, const LayerShape& shape, WeightLoader& loader);

  // Computes activation(x W1^T + b1) W2^T + b2 or, with a gate,
  // (activation(x Wg^T + bg) * (x W1^T + b1)) W2^T + b2. Returns it as [T, E] in the branch
  // buffer, which may also hold x.
  MatrixView<float> Forward(const LinearInput& x, const LayerRun& run) const override;

  // Computes the block for at most kFeedForwardRows rows into y, which may be x.
  void Compute(const LinearInput& x, MatrixView<float> y, Workspace& workspace) const;

 private:
  Activation activation_;
  PackedLinear gate_;  // [F, E]; may be empty
  PackedLinear in_;    // [F, E]
  PackedLinear out_;   // [E, F]
};

}  // namespace attendant
