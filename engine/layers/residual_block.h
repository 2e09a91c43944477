// BlockNorms: the norms and the residual sum around the body of a block. ResidualBlock: a body with
// its norms.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/matrix_view.h"
#include "engine/layers/state/block_body.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/layer_kinds.h"
#include "engine/model/residual_blocks.h"

namespace attendant {

// The steps before and after the body of a block: after(x + on_branch(body(before(x)))). Blocks
// without one of these norms skip it.
class BlockNorms {
 public:
  // Reads the block's norms, whose names begin with `prefix`.
  BlockNorms(const std::string& prefix, const ResidualBlockShape& block, NormKind kind,
             WeightLoader& loader);

  // Returns the input of the body: before(x) in the branch buffer, because the sum still needs x,
  // or x itself. Like the result of Join, it includes the GEMM input for products that read it.
  PreparedRows Enter(const PreparedRows& x, const LayerRun& run) const;

  // Computes after(x + on_branch(branch)) in x and returns it, or returns `branch` if the block has
  // no residual. May overwrite `branch`.
  PreparedRows Join(MatrixView<float> x, MatrixView<float> branch, const LayerRun& run) const;

 private:
  std::optional<int> before_;
  std::optional<int> on_branch_;
  std::optional<int> after_;
  bool has_residual_;
  bool adds_before_branch_norm_;
};

// A block that follows the attention. Copies share the body.
struct ResidualBlock {
  std::shared_ptr<const BlockBody> body;
  BlockNorms norms;
};

}  // namespace attendant
