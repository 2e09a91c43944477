// MultiHeadAttention: the projections and the attention of one layer, for self-attention and
// cross-attention: Vaswani et al. 2017, section 3.2.2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/extras/attention_extra.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable once loaded, apart from VisitNorms, and thread-safe. Sizes are those of LayerShape.
class MultiHeadAttention {
 public:
  // Reads the input projections, fused into one if they take the same rows, and the output
  // projection, as far as the layer has them. For disentangled attention, `distances` is the table
  // that ReadDistanceTable (extras/position_projections.h) returns. Errors of `loader`.
  static absl::StatusOr<MultiHeadAttention> Load(const std::string& prefix, const LayerShape& shape,
                                                 WeightLoader& loader,
                                                 const AlignedBuffer<float>& distances = {});

  // Computes the context, softmax(Q K^T scale) V with the heads side by side, and returns it as
  // [PaddedRows(T), C] in the context buffer, ready for Project where blocks of it can be. x:
  // [PaddedRows(T), E]. Values that come from outside a bottleneck are made of
  // activations.hidden().
  PreparedRows Context(const LinearInput& x, const LayerRun& run) const;

  // Computes keys and values of cross-attention from rows of the run's inputs. The result is a view
  // of the run's buffers.
  CrossKv ProjectCrossKv(const CrossKvRange& rows, Workspace& workspace) const;

  // Computes context Wo^T + bo and returns it as [PaddedRows(T), output width] in the branch
  // buffer, or returns `context` itself if there is no output projection.
  MatrixView<float> Project(const PreparedRows& context, const LayerRun& run) const;

  const LayerShape& shape() const { return shape_; }  // of the whole layer

  // Calls `visit` for each norm, which it may change.
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit);

  // Reserves the memory that the products need for the largest batch of the run.
  void ReserveScratch(Workspace& workspace) const;
  int64_t bytes() const;

 private:
  // An input projection, or all of them fused, and its first column where queries, keys and values
  // are side by side.
  struct Input {
    int64_t column;
    PackedLinear linear;
  };

  explicit MultiHeadAttention(const LayerShape& shape) : shape_(shape) {}

  absl::Status LoadInputs(const std::string& prefix, WeightLoader& loader);
  absl::Status LoadNorms(const std::string& prefix, WeightLoader& loader);
  absl::Status LoadOutput(const LinearPart& part, WeightLoader& loader);

  // Computes what the attention reads of x: see ProjectInput, or as pairs (TakesPairs) where
  // nothing but the attention reads it.
  AttentionInput ProjectRows(const LinearInput& x, const LayerRun& run) const;

  // Whether the input projection can leave pairs.
  bool ProjectsToPairs(const LayerRun& run) const;

  // Computes the queries of the kept rows, or of the wanted ones alone, and, unless they attend to
  // cross_kv, the keys and values of all kept rows; applies rotary positions to them.
  MatrixView<const float> ProjectInput(const LinearInput& x, const LayerRun& run) const;

  // The context's room, and that of its operand if all rows are computed and the output projection
  // can read what single heads have written.
  PreparedRows ContextRows(const LayerRun& run) const;

  // Whether fewer rows are multiplied if queries are made of the wanted rows of x alone.
  bool CanNarrowQueries(MatrixView<const float> x, const LayerRun& run) const;

  // Computes the queries of the wanted rows of x. May overwrite keys and values in any rows of qkv.
  void ProjectWantedQueries(MatrixView<const float> x, MatrixView<float> qkv,
                            const LayerRun& run) const;

  // Computes the columns [begin, end) of queries, keys and values of x, in the rows of y.
  void ProjectColumns(int64_t begin, int64_t end, const LinearInput& x, MatrixView<float> y,
                      Workspace& workspace) const;

  LayerShape shape_;
  std::vector<Input> inputs_;                 // H Dk + K (Dk + Dv) columns, less what is shared
  std::optional<PackedLinear> output_;        // [output width, C]
  SharedBuffer<float> bias_alone_;            // the output of a layer without heads; or of size 0
  std::optional<NormParameters> query_norm_;  // [H Dk], or [Dk] for each head
  std::optional<NormParameters> key_norm_;    // [K Dk], or [Dk] for each head
  std::shared_ptr<const AttentionExtra> extra_;  // or null
};

}  // namespace attendant
