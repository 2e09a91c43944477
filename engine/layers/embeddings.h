// Embeddings: computes the input of layer 0 from token ids or from features.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/data_type.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/encoder.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// An embedding table in the data type of its file. Immutable and thread-safe. A default-constructed
// table has no rows.
class EmbeddingTable {
 public:
  EmbeddingTable() = default;

  // Reads the tensor [rows, width] unless `rows` is 0, and stores it as `type`: float32, float16 or
  // bfloat16. Makes no temporary copy in another type.
  EmbeddingTable(const std::string& name, int64_t rows, int64_t width, DataType type,
                 WeightLoader& loader);

  // Writes row [width] times `scale` to `target`, in float32.
  void Take(int64_t row, float scale, float* target) const;
  // Adds row [width] to `sum`.
  void Add(int64_t row, float* sum) const;

 private:
  const char* Row(int64_t row) const { return rows_.data() + row * width_ * ByteWidth(type_); }

  int64_t width_ = 0;
  DataType type_ = DataType::kFloat32;
  SharedBuffer<char> rows_;
};

// Token embeddings: the embedding module of BERT (Devlin et al. 2019, figure 2). Immutable and
// thread-safe.
class Embeddings {
 public:
  // Reads the tables, the norm and the projection that `shape` has.
  Embeddings(const EmbeddingShape& shape, const LayerShape& layer, WeightLoader& loader);

  // Computes projection(norm(word + position + token type)) into `target` [ids, E], one row per id.
  // Models without a norm or a projection skip it.
  void Embed(const TokenIds& ids, MatrixView<float> target, Workspace& workspace) const;

 private:
  // Adds the position, token type and task type embeddings of row r to `sum`.
  void AddTables(const TokenIds& ids, int64_t r, float* sum) const;
  void SumTables(const TokenIds& ids, MatrixView<float> sums, const ThreadTeam& team) const;
  // Zeroes the word embeddings of mask tokens and scales the others of each sequence (ESM).
  void LeaveOutMasks(const TokenIds& ids, MatrixView<float> words, const ThreadTeam& team) const;
  // Copies only the word embeddings, side by side with those of their neighbours if the model uses
  // them.
  void TakeWords(const TokenIds& ids, MatrixView<float> words, const ThreadTeam& team) const;

  EmbeddingShape shape_;
  EmbeddingTable word_;        // [V, W]
  EmbeddingTable position_;    // [P, W], or [P, E] if only words are projected; may be empty
  EmbeddingTable token_type_;  // [Y, W], or [Y, E] if only words are projected; may be empty
  EmbeddingTable task_type_;   // [tasks, W]; may be empty
  std::optional<int> norm_;
  PackedLinear projection_;  // [E, W], or [E, 3 W] with neighbours; may be empty
};

// The patch embedding: the layers before the encoder in models of image patches or audio frames, a
// projection, prefix tokens, position embeddings and a norm. Immutable and thread-safe.
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
