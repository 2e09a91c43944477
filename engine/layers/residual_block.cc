#include "engine/layers/residual_block.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/norm/norm.h"

namespace attendant {

absl::StatusOr<BlockNorms> BlockNorms::Load(const std::string& prefix,
                                            const ResidualBlockShape& block, NormKind kind,
                                            WeightLoader& loader) {
  BlockNorms norms;
  norms.has_residual_ = block.has_residual;
  norms.adds_before_branch_norm_ = block.adds_before_branch_norm;
  for (const auto& [shape, norm] :
       {std::pair{&block.before, &norms.before_}, std::pair{&block.on_branch, &norms.on_branch_},
        std::pair{&block.after, &norms.after_}}) {
    if (!*shape) continue;
    ASSIGN_OR_RETURN(*norm,
                     loader.AddNorm(prefix + (*shape)->name, block.width, kind, (*shape)->epsilon));
  }
  return norms;
}

PreparedRows BlockNorms::Enter(const PreparedRows& x, const LayerRun& run) const {
  if (!before_) return x;
  const MatrixView<float> y = run.Kept(run.workspace.activations.branch());
  const PreparedRows normed = {y, run.Prepare(y.cols)};
  LayerNorm(run.workspace.team, x.rows, run.workspace.norm(*before_), normed);
  return normed;
}

PreparedRows BlockNorms::Join(MatrixView<float> x, MatrixView<float> branch,
                              const LayerRun& run) const {
  if (!has_residual_) return branch;
  const Workspace& workspace = run.workspace;
  const ThreadTeam& team = workspace.team;
  if (on_branch_ && adds_before_branch_norm_) {
    AddLayerNorm(team, x, branch, workspace.norm(*on_branch_), branch);
  } else if (on_branch_ && after_) {
    LayerNorm(team, branch, workspace.norm(*on_branch_), branch);
  } else if (on_branch_) {
    AddNormalized(team, x, branch, workspace.norm(*on_branch_), x);
    return x;
  }
  if (!after_) {
    Add(team, x, branch, x);
    return x;
  }
  const PreparedRows y = {x, run.Prepare(x.cols)};
  AddLayerNorm(team, x, branch, workspace.norm(*after_), y);
  return y;
}

}  // namespace attendant
