// The patch embedding: what a model makes of rows of features, which are patches or frames.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/run_state.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, thread-safe.
class PatchEmbedding {
 public:
  static absl::StatusOr<PatchEmbedding> Load(const PatchEmbeddingShape& shape,
                                             const LayerShape& layer, WeightLoader& loader);

  // target [rows, E] = the projection of as many features, from the first row of embedded() on. The
  // model has that linear layer.
  void Project(MatrixView<float> target, RunState& run) const;

  // Makes the input of layer 0 of one sequence: writes the prefix tokens to the first rows, and
  // adds positions and norm. rows: [prefix_tokens + features, E], the features already in their
  // rows; positions: one for each feature.
  void Apply(absl::Span<const int32_t> positions, MatrixView<float> rows, RunState& run) const;

  // Those that the loader's source has; see WeightLoader::ReplaceNorm.
  absl::Status ReplaceNorms(WeightLoader& loader);

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  PatchEmbeddingShape shape_;
  std::optional<PackedLinear> projection_;  // [E, feature_width]
  SharedBuffer<float> prefix_tokens_;       // [prefix_tokens, E], positions added
  SharedBuffer<float> positions_;           // [features, E], or of size 0
  std::optional<NormParameters> norm_;
};

}  // namespace attendant
