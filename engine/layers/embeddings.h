// Embeddings of token ids: the embedding module of BERT (Devlin et al. 2019, figure 2).
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/embedding_table.h"
#include "engine/layers/encoder.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe.
class Embeddings {
 public:
  // The tables are `shape.width` wide. If the model has a projection to the width of the layers, it
  // is loaded too.
  static absl::StatusOr<Embeddings> Load(const EmbeddingShape& shape, const LayerShape& layer,
                                         WeightLoader& loader);

  // Computes norm(word + position + token type), with the norm and the projection if the model has
  // them: one row of `target` [ids, E] for each id.
  void Embed(const TokenIds& ids, MatrixView<float> target, Workspace& workspace) const;

  // Calls `visit` for each norm, which it may change.
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) {
    if (norm_) visit(*norm_);
  }

  void ReserveScratch(Workspace& workspace) const;
  int64_t bytes() const;

 private:
  // Adds the position, token type and task type embeddings of row r to `sum`.
  void AddTables(const TokenIds& ids, int64_t r, float* sum) const;
  void SumTables(const TokenIds& ids, MatrixView<float> sums, const ThreadTeam& team) const;
  // Leaves out the masks of each sequence, and scales its other words.
  void LeaveOutMasks(const TokenIds& ids, MatrixView<float> words, const ThreadTeam& team) const;
  // Copies the word embeddings alone, each with those of its neighbours if the model wants them.
  void TakeWords(const TokenIds& ids, MatrixView<float> words, const ThreadTeam& team) const;

  EmbeddingShape shape_;
  EmbeddingTable word_;        // [V, W]
  EmbeddingTable position_;    // [P, W], or [P, E] if words alone are projected; or empty
  EmbeddingTable token_type_;  // [Y, W], or [Y, E] if words alone are projected; or empty
  EmbeddingTable task_type_;   // [tasks, W]; or empty
  std::optional<NormParameters> norm_;
  std::optional<PackedLinear> projection_;  // [E, W], or [E, 3 W] with neighbours
};

}  // namespace attendant
