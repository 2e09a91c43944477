// DenseHead: the linear layers that a model applies to pooled vectors or to each token.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe. Computes in float32 whatever the compute type of the layers: its
// products cost little, and class scores are sensitive to rounding.
class DenseHead {
 public:
  DenseHead(const DenseHeadShape& head, const LayerShape& layer, WeightLoader& loader);
  // Creates a head of kind kNone, which copies vectors of this width.
  explicit DenseHead(int64_t width) : kind_(HeadKind::kNone), in_(width), out_(width) {}

  HeadKind kind() const { return kind_; }

  // Computes the output vectors, [rows, width], of the input rows that `fill` writes, at most
  // kHeadRows. The result lies in the workspace and is valid until the next call. `fill` is called
  // on the threads of the team.
  MatrixView<float> Forward(int64_t rows, HeadRowFunction fill, Workspace& workspace) const;

 private:
  struct Layer {
    PackedLinear linear;
    Activation activation;
    Residual residual = Residual::kNone;
    PackedLinear projection = {};  // of a residual, or empty
    std::optional<int> norm = {};
  };

  // x + out(activation(in(norm(x))))
  struct Block {
    int norm;
    PackedLinear in;
    Activation activation;
    PackedLinear out;
  };

  // Computes the block of x into the first out_ columns of y. Overwrites the columns of x after its
  // first out_.
  void ApplyBlock(MatrixView<float> x, MatrixView<float> y, Workspace& workspace) const;
  // Adds the residual of `layer`, which computed `y` [rows, out] from `x`, to y. A projection of
  // the residual is computed in the columns of `room` after those of y.
  static void AddResidual(const Layer& layer, MatrixView<float> x, MatrixView<float> room,
                          MatrixView<float> y, Workspace& workspace);

  HeadKind kind_;
  int64_t in_;
  int64_t out_;
  std::vector<Layer> layers_;
  std::optional<Block> block_;  // follows layers_
  bool normalizes_ = false;
};

// Computes the sparse vector of each sequence with a lexical head. The weight of a token id is the
// largest weight of its occurrences; ids in `excluded_ids`, which are ascending, get 0. The
// sequences must have ids.
void WeighTokens(const DenseHead& head, absl::Span<const int32_t> excluded_ids,
                 MatrixView<const float> hidden_states,
                 absl::Span<const VocabularySequence> sequences, Workspace& workspace);

}  // namespace attendant
