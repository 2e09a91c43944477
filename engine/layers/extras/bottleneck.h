// Bottleneck: the linear layers and norms around the blocks of a layer whose inner width is not E:
// Sun et al. 2020 (MobileBERT), section 3.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/layers/state/block_body.h"
#include "engine/model/model_description.h"

namespace attendant {

// The last block of x = norm(x + out(blocks(norm(in(x))))).
class Bottleneck : public BlockBody {
 public:
  // Load reads the linear layers before the blocks. WithOut reads the layer after them, whose
  // weights follow those of the blocks in ListWeights. Both return the errors of `loader`.
  static absl::StatusOr<Bottleneck> Load(const std::string& prefix, const LayerShape& shape,
                                         WeightLoader& loader);
  absl::StatusOr<Bottleneck> WithOut(const std::string& prefix, const LayerShape& shape,
                                     WeightLoader& loader) &&;

  void Begin(BlockRows& rows, const LayerRun& run) const override;
  void KeepSelectedRows(const LayerRun& run) const override;
  // Returns the layer's input.
  MatrixView<float> Residual(MatrixView<float> x, const LayerRun& run) const override;
  MatrixView<float> Forward(const LinearInput& x, const LayerRun& run) const override;

 private:
  // A linear layer and the norm after it.
  struct NormedLinear {
    static absl::StatusOr<NormedLinear> Load(const std::string& name, int64_t out, int64_t in,
                                             const LayerShape& shape, WeightLoader& loader);
    // Computes norm(x W^T + b) in `target`, which is one of the run's buffers.
    MatrixView<float> Apply(const LinearInput& x, MatrixView<float> target,
                            const LayerRun& run) const;

    PackedLinear linear;
    int norm;
  };

  explicit Bottleneck(NormedLinear in) : in_(std::move(in)) {}

  NormedLinear in_;
  // The input of queries and keys, if values are projected from outside the bottleneck.
  std::optional<NormedLinear> attention_;
  std::optional<PackedLinear> out_;  // set by WithOut
};

}  // namespace attendant
