// Bottleneck: the linear layers and norms around the blocks of a layer whose inner width is not E:
// Sun et al. 2020 (MobileBERT), section 3.1.
#pragma once

#include <string>

#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/layer_run.h"
#include "engine/model/model_description.h"

namespace attendant {

// The last block of x = norm(x + out(blocks(norm(in(x))))).
class Bottleneck : public BlockBody {
 public:
  // Reads the linear layers before the blocks.
  Bottleneck(const std::string& prefix, const LayerShape& shape, WeightLoader& loader);
  // Reads the layer after the blocks, whose weights follow theirs in ListWeights.
  void LoadOut(const std::string& prefix, const LayerShape& shape, WeightLoader& loader);

  void Begin(BlockRows& rows, const LayerRun& run) const override;
  void KeepSelectedRows(const LayerRun& run) const override;
  // Returns the layer's input.
  MatrixView<float> Residual(MatrixView<float> x, const LayerRun& run) const override;
  MatrixView<float> Forward(const LinearInput& x, const LayerRun& run) const override;

 private:
  // A linear layer and the norm after it.
  struct NormedLinear {
    // Computes norm(x W^T + b) in `target`, which is one of the run's buffers.
    MatrixView<float> Apply(const LinearInput& x, MatrixView<float> target,
                            const LayerRun& run) const;

    PackedLinear linear;
    int norm = 0;
  };

  NormedLinear in_;
  // The input of queries and keys if values are projected from outside the bottleneck, or empty.
  NormedLinear attention_;
  PackedLinear out_;
};

}  // namespace attendant
