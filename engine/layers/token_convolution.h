// A convolution along the tokens of each sequence, next to a layer.
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

// Immutable and thread-safe.
class TokenConvolution {
 public:
  // The shape of the layer must have a convolution.
  static absl::StatusOr<TokenConvolution> Load(const std::string& prefix, const LayerShape& shape,
                                               WeightLoader& loader);

  // Returns activation(sum over t of W_t x[p + t - taps / 2] + b) for the token at each position p
  // of the batch's sequences: [PaddedRows(T), E] in the convolved buffer. p is the position in the
  // padded sequence; x is zero where the sequence has no token. x: [PaddedRows(T), E], the input of
  // the layer. A row of the result depends on its sequence alone.
  MatrixView<float> Forward(MatrixView<const float> x, RunState& run) const;

  // Computes norm(x + convolved) in the kept rows of x, which is the output of the layer.
  void AddTo(MatrixView<float> x, MatrixView<const float> convolved, RunState& run) const;

  // Replaces the norm if the loader's source has it; see WeightLoader::ReplaceNorm.
  absl::Status ReplaceNorms(WeightLoader& loader) { return loader.ReplaceNorm(norm_); }

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  TokenConvolution(const LayerShape& shape, NormParameters norm)
      : shape_(shape.extras.convolution), width_(shape.hidden_size), norm_(std::move(norm)) {}

  absl::Status LoadGroups(const std::string& name, WeightLoader& loader);

  // Gathers the input of the rows [first, first + places.rows) of the result: for each group, its
  // columns of every tap, side by side. Rows beyond T get zeros.
  void Gather(MatrixView<const float> x, int64_t first, MatrixView<float> places,
              const RunState& run) const;
  void GatherRow(MatrixView<const float> x, const AttentionSequence& sequence, int64_t row,
                 float* places) const;

  ConvolutionShape shape_;
  int64_t width_;                     // E
  std::vector<PackedLinear> groups_;  // each [E / groups, taps * E / groups]
  NormParameters norm_;
};

}  // namespace attendant
