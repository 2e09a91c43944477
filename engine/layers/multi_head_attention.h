// MultiHeadAttention: the projections and the attention of one layer, for self-attention and
// cross-attention: Vaswani et al. 2017, section 3.2.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/extras/attention_extra.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe. LayerShape defines the letters of shapes.
class MultiHeadAttention {
 public:
  // Reads the input projections, fused into one if they read the same rows, and the output
  // projection, if the layer has them. Disentangled attention requires `distances`, the table that
  // ReadDistanceTable (extras/attention_extra.h) returns.
  MultiHeadAttention(const std::string& prefix, const LayerShape& shape, WeightLoader& loader,
                     const AlignedBuffer<float>& distances = {});

  // Computes the context, softmax(Q K^T scale) V with the heads side by side, from x [T, E].
  // Returns [T, C] in the context buffer, with its packed GEMM input if the attention can write
  // that too. If a bottleneck takes its values from outside, they are projected from
  // activations.hidden() instead of x.
  PreparedRows Context(const LinearInput& x, const LayerRun& run) const;

  // Computes cross-attention keys and values from rows of the run's inputs. The result is a view of
  // the run's buffers.
  CrossKv ProjectCrossKv(const CrossKvRange& rows, Workspace& workspace) const;

  // Computes context Wo^T + bo. Returns it as [T, output width] in the branch buffer, or returns
  // `context` itself if there is no output projection.
  MatrixView<float> Project(const PreparedRows& context, const LayerRun& run) const;

 private:
  // An input projection, or all of them fused. `column` is its first column in the matrix that has
  // queries, keys and values side by side.
  struct Input {
    int64_t column;
    PackedLinear linear;
  };

  void LoadInputs(const std::string& prefix, WeightLoader& loader);
  void LoadOutput(const std::string& prefix, WeightLoader& loader);
  void LoadNorms(const std::string& prefix, WeightLoader& loader);

  // Whether the attention accepts the queries, keys and values of the input projection as bf16
  // pairs (AcceptsBf16Pairs) and nothing else reads them. Only then may ProjectToPairs be called.
  bool ProjectsToPairs(const LayerRun& run) const;
  MatrixView<const float> ProjectToPairs(const LinearInput& x, const LayerRun& run) const;

  // Computes the queries of the kept rows, or only of the selected rows, and, unless the batch has
  // cross_kv, the keys and values of all kept rows. Applies rotary positions to them. Without an
  // input projection, they are x itself.
  MatrixView<const float> ProjectInput(const LinearInput& x, const LayerRun& run) const;

  // Applies the norms of queries and keys, and their rotary positions, to some of the kept rows,
  // from `first` on. If the batch has cross_kv, only the norm of the queries.
  void NormalizeAndRotate(MatrixView<float> rows, int64_t first, const LayerRun& run) const;

  // Whether computing only the selected queries multiplies fewer rows.
  bool CanNarrowQueries(MatrixView<const float> x, const LayerRun& run) const;

  // Computes the queries of the selected rows of x. May overwrite keys and values in any rows of
  // qkv.
  void ProjectSelectedQueries(MatrixView<const float> x, MatrixView<float> qkv,
                              const LayerRun& run) const;

  // Computes the columns [begin, end) of the queries, keys and values of x into the rows of y.
  void ProjectColumns(int64_t begin, int64_t end, const LinearInput& x, MatrixView<float> y,
                      Workspace& workspace) const;

  LayerShape shape_;
  AttentionShape attention_;
  std::vector<Input> inputs_;  // H Dk + K (Dk + Dv) columns; fewer if queries, keys or values share
  PackedLinear output_;        // [output width, C], or empty
  SharedBuffer<float> bias_alone_;  // the output of a layer without heads; or empty
  std::optional<int> query_norm_;   // [H Dk], or [Dk] for each head
  std::optional<int> key_norm_;     // [K Dk], or [Dk] for each head
  AttentionExtra extra_;
};

}  // namespace attendant
