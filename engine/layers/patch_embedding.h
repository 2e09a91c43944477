// The layers before the encoder for models that take rows of patches or frames: a projection, rows
// that the model adds, positions and a norm.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, thread-safe.
class PatchEmbedding {
 public:
  static absl::StatusOr<PatchEmbedding> Load(const PatchEmbeddingShape& shape,
                                             const LayerShape& layer, WeightLoader& loader);

  // Projects features to the width of the layers: as many rows of embedded(), from its first row
  // on, as `target` [rows, E] has. The model must have this projection.
  void Project(MatrixView<float> target, Workspace& workspace) const;

  // Completes the input of layer 0 for one sequence. rows: [prefix_tokens + features, E] with the
  // features already in place; the model's own rows are written before them. positions: one for
  // each feature row.
  void Apply(absl::Span<const int32_t> positions, MatrixView<float> rows,
             Workspace& workspace) const;

  // Calls `visit` for each norm, which it may change.
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) {
    if (norm_) visit(*norm_);
  }

  void ReserveScratch(Workspace& workspace) const;
  int64_t bytes() const;

 private:
  PatchEmbeddingShape shape_;
  std::optional<PackedLinear> projection_;  // [E, feature_width]
  SharedBuffer<float> prefix_tokens_;       // [prefix_tokens, E], positions added
  SharedBuffer<float> positions_;           // [features, E], or of size 0
  std::optional<NormParameters> norm_;
};

}  // namespace attendant
