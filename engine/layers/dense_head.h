// DenseHead: the linear layers that a model applies to pooled vectors, or to each token.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe. Its products are those of float32, whatever the layers compute in:
// they cost little, and scores of classes would show the difference.
class DenseHead {
 public:
  static absl::StatusOr<DenseHead> Load(const DenseHeadShape& head, const LayerShape& layer,
                                        WeightLoader& loader);
  // A head that makes nothing of vectors of this width.
  static DenseHead None(int64_t width) { return DenseHead(HeadKind::kNone, width); }

  HeadKind kind() const { return kind_; }

  // Returns the head's vectors, [rows, width], of the rows that `fill` writes, at most kHeadRows.
  // They lie in the workspace until the next call. `fill` is called on the threads of the team.
  MatrixView<float> Forward(int64_t rows, HeadRowFunction fill, Workspace& workspace) const;

  // Calls `visit` for each norm, which it may change.
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit);

  // Reserves the memory that the products need.
  void ReserveScratch(Workspace& workspace) const;
  int64_t bytes() const;

 private:
  struct Layer {
    PackedLinear linear;
    Activation activation;
    Residual residual = Residual::kNone;
    std::optional<PackedLinear> projection = {};  // of a residual
    std::optional<NormParameters> norm = {};
  };

  // x + out(activation(in(norm(x))))
  struct Block {
    NormParameters norm;
    PackedLinear in;
    Activation activation;
    PackedLinear out;
  };

  DenseHead(HeadKind kind, int64_t in) : kind_(kind), in_(in), out_(in) {}
  // Adds the linear layer `name`, which takes what the head makes so far.
  absl::Status Add(const std::string& name, const DenseShape& shape, WeightLoader& loader);
  absl::Status LoadLayers(const DenseHeadShape& head, const LayerShape& layer,
                          WeightLoader& loader);
  absl::Status LoadBlock(const DenseHeadShape& head, const LayerShape& layer, WeightLoader& loader);
  // The block of x, whose columns after the first out_ it overwrites, in the first ones of y.
  void ApplyBlock(MatrixView<float> x, MatrixView<float> y, Workspace& workspace) const;
  // Adds the residual of the layer that has made `y` [rows, out] of `x`; its projection is computed
  // in the columns of `room` after those of y.
  static void AddResidual(const Layer& layer, MatrixView<float> x, MatrixView<float> room,
                          MatrixView<float> y, Workspace& workspace);

  HeadKind kind_;
  int64_t in_;
  int64_t out_;
  std::vector<Layer> layers_;
  std::optional<Block> block_;  // after them
  bool normalizes_ = false;
};

// Makes the sparse vector of each sequence, whose ids must be there: each word weighs as much as
// the lexical head says of its tokens at most, and those of `excluded_ids`, ascending, weigh
// nothing.
void WeighTokens(const DenseHead& head, absl::Span<const int32_t> excluded_ids,
                 MatrixView<const float> hidden_states,
                 absl::Span<const VocabularySequence> sequences, Workspace& workspace);

}  // namespace attendant
