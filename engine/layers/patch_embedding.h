// PatchEmbedding: the layers before the encoder in models of image patches or audio frames: a
// projection, prefix tokens, position embeddings and a norm.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe.
class PatchEmbedding {
 public:
  PatchEmbedding(const PatchEmbeddingShape& shape, const LayerShape& layer, WeightLoader& loader);

  // Projects the first target.rows rows of activations.embedded() into `target` [rows, E]. The
  // model must have a projection.
  void Project(MatrixView<float> target, Workspace& workspace) const;

  // Completes the input of layer 0 for one sequence, `rows` [prefix_tokens + features, E], whose
  // features are already in place: writes the prefix tokens before them, adds position embeddings
  // and applies the norm. `positions` has one position per feature.
  void Apply(absl::Span<const int32_t> positions, MatrixView<float> rows,
             Workspace& workspace) const;

 private:
  PatchEmbeddingShape shape_;
  PackedLinear projection_;            // [E, feature_width], or empty
  SharedBuffer<float> prefix_tokens_;  // [prefix_tokens, E], with positions added
  SharedBuffer<float> positions_;      // [features, E], or empty
  std::optional<int> norm_;
};

}  // namespace attendant
