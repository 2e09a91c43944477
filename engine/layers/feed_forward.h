// The feed-forward block of a layer: FeedForward, or a MixtureOfExperts.
#pragma once

#include <string>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// The position-wise feed-forward block: Vaswani et al. 2017, section 3.3; with a gate, Shazeer
// 2020. Immutable and thread-safe. E is the width of the block's input and output, F its inner
// width.
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

// Several feed-forward blocks, of which each token passes through a few: Shazeer et al. 2017.
// Immutable and thread-safe. The router is float32 whatever the compute type of the experts, so
// that rounding rarely changes which experts a token passes through.
class MixtureOfExperts : public BlockBody {
 public:
  // Reads and packs the weights whose names begin with `prefix`. `shape` must have a mixture.
  MixtureOfExperts(const std::string& prefix, const LayerShape& shape, WeightLoader& loader);

  // Computes sum over e of p_e expert_e(x) + b, where p = softmax(R x) and e are the experts with
  // the largest p, in ascending order. Returns it as [T, E] in the branch buffer, which may also
  // hold x. An expert computes only the rows routed to it.
  MatrixView<float> Forward(const LinearInput& x, const LayerRun& run) const override;

 private:
  // Computes at most kFeedForwardRows rows of x into y, which may be x.
  void Compute(MatrixView<const float> x, MatrixView<float> y, Workspace& workspace) const;
  // Chooses the experts of each row and copies the row to their inputs.
  void Distribute(MatrixView<const float> x, Workspace& workspace) const;
  // Computes the weighted sum of the experts' outputs for each row.
  void Combine(MatrixView<float> y, Workspace& workspace) const;

  PackedLinear router_;  // R [experts, E]
  std::vector<FeedForward> experts_;
  SharedBuffer<float> bias_;  // b [E]
};

}  // namespace attendant
