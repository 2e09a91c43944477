#include "engine/layers/residual_block.h"

#include "engine/kernels/norm/norm.h"

namespace attendant {

BlockNorms::BlockNorms(const std::string& prefix, const ResidualBlockShape& block, NormKind kind,
                       WeightLoader& loader)
    : has_residual_(block.has_residual), adds_before_branch_norm_(block.adds_before_branch_norm) {
  const auto read = [&](const std::optional<BlockNormShape>& norm) -> std::optional<int> {
    if (!norm) return std::nullopt;
    return loader.AddNorm(prefix + norm->name, block.width, kind, norm->epsilon);
  };
  before_ = read(block.before);
  on_branch_ = read(block.on_branch);
  after_ = read(block.after);
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
