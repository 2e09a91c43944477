// TokenConvolution: a convolution along the tokens of each sequence, which is added to the output
// of the layer (the first layer of DeBERTa-v2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/layer_run.h"
#include "engine/model/model_description.h"

namespace attendant {

// The last block of y = norm(blocks(x) + convolution(x)), where convolution(x) for the token at
// position p of its padded sequence is activation(sum over t of W_t x[p + t - taps / 2] + b), and x
// is zero where the sequence has no token. A row of the result depends only on its own sequence.
class TokenConvolution : public BlockBody {
 public:
  // `shape` must have a convolution.
  TokenConvolution(const std::string& prefix, const LayerShape& shape, WeightLoader& loader);

  // Computes the convolution, unless the run stops at an attention stage.
  void Begin(BlockRows& rows, const LayerRun& run) const override;
  void KeepSelectedRows(const LayerRun& run) const override;
  // Returns the result of Begin.
  MatrixView<float> Forward(const LinearInput& x, const LayerRun& run) const override;

 private:
  // Gathers the input of the rows [first, first + taps.rows) of the result: the columns of the
  // first group at every tap side by side, then those of the next group. Rows beyond T get zeros.
  void Gather(MatrixView<const float> x, int64_t first, MatrixView<float> taps,
              const LayerRun& run) const;
  void GatherRow(MatrixView<const float> x, const AttentionSequence& sequence, int64_t row,
                 float* taps) const;

  ConvolutionShape shape_;
  int64_t width_;                     // E
  std::vector<PackedLinear> groups_;  // each [E / groups, taps * E / groups]
};

}  // namespace attendant
