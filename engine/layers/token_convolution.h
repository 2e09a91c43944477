// A convolution along the tokens of each sequence, beside a layer.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/run_state.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, thread-safe.
class TokenConvolution {
 public:
  // The layer's shape has a convolution.
  static absl::StatusOr<TokenConvolution> Load(const std::string& prefix, const LayerShape& shape,
                                               WeightLoader& loader);

  // activation(sum over t of W_t x[p + t - taps / 2] + b) for the token at each place p of the
  // batch's sequences: [PaddedRows(T), E] in the convolved buffer. Places are positions in the
  // padded row; where no token of the sequence is, x is zeros. x: [PaddedRows(T), E], what enters
  // the layer. A row depends on its sequence alone.
  MatrixView<float> Forward(MatrixView<const float> x, RunState& run) const;

  // norm(x + convolved), in the kept rows of x: what leaves the layer.
  void AddTo(MatrixView<float> x, MatrixView<const float> convolved, RunState& run) const;

  // See WeightLoader::ReplaceNorm.
  absl::Status ReplaceNorms(WeightLoader& loader) { return loader.ReplaceNorm(norm_); }

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  TokenConvolution(const LayerShape& shape, NormParameters norm)
      : shape_(shape.convolution), width_(shape.hidden_size), norm_(std::move(norm)) {}

  absl::Status LoadGroups(const std::string& name, WeightLoader& loader);

  // The places that the rows [first, first + places.rows) of x look at: for each group its columns
  // of each place, side by side. Zeros for rows beyond T.
  void Gather(MatrixView<const float> x, int64_t first, MatrixView<float> places,
              const RunState& run) const;
  void GatherRow(MatrixView<const float> x, const AttentionSequence& sequence, int64_t row,
                 float* places) const;

  ConvolutionShape shape_;
  int64_t width_;                     // E
  std::vector<PackedLinear> groups_;  // [E / groups, taps E / groups] each
  NormParameters norm_;
};

}  // namespace attendant
