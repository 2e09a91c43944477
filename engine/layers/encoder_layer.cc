#include "engine/layers/encoder_layer.h"

#include "engine/kernels/norm/norm.h"
#include "engine/layers/extras/bottleneck.h"
#include "engine/layers/extras/token_convolution.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/state/rows.h"

namespace attendant {
namespace {

// Loads the body of a block that follows the attention. The input layers of `bottleneck` are
// already loaded.
std::shared_ptr<const BlockBody> LoadBody(const ResidualBlockShape& block,
                                          const std::string& prefix, const LayerShape& shape,
                                          const std::shared_ptr<Bottleneck>& bottleneck,
                                          WeightLoader& loader) {
  switch (block.body) {
    case BlockBodyKind::kAttention:
      break;
    case BlockBodyKind::kFeedForward:
      return std::make_shared<FeedForward>(prefix + block.prefix, shape, loader);
    case BlockBodyKind::kMixture:
      return std::make_shared<MixtureOfExperts>(prefix + block.prefix, shape, loader);
    case BlockBodyKind::kBottleneckOut:
      bottleneck->LoadOut(prefix, shape, loader);
      return bottleneck;
    case BlockBodyKind::kConvolution:
      return std::make_shared<TokenConvolution>(prefix, shape, loader);
  }
  return nullptr;
}

}  // namespace

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

EncoderLayer::EncoderLayer(const std::string& prefix, const LayerShape& shape, WeightLoader& loader,
                           const AlignedBuffer<float>& distances)
    : EncoderLayer(prefix, shape, loader, distances,
                   shape.extras.bottleneck.width > 0
                       ? std::make_shared<Bottleneck>(prefix, shape, loader)
                       : nullptr) {}

EncoderLayer::EncoderLayer(const std::string& prefix, const LayerShape& shape, WeightLoader& loader,
                           const AlignedBuffer<float>& distances,
                           const std::shared_ptr<Bottleneck>& bottleneck)
    : attention_(prefix, shape, loader, distances),
      attention_norms_(prefix, ListBlocks(shape).front(), shape.norms.kind, loader) {
  const std::vector<ResidualBlockShape> blocks = ListBlocks(shape);
  for (auto block = blocks.begin() + 1; block != blocks.end(); ++block) {
    blocks_.push_back({LoadBody(*block, prefix, shape, bottleneck, loader),
                       BlockNorms(prefix, *block, shape.norms.kind, loader)});
  }
}

PreparedRows EncoderLayer::Forward(const PreparedRows& x, const LayerRun& run) const {
  BlockRows rows = {x, x.rows};
  for (const ResidualBlock& block : blocks_) block.body->Begin(rows, run);
  const PreparedRows context = attention_.Context(attention_norms_.Enter(rows.entry, run), run);
  if (run.stage == AttendStage::kContext) return context;
  return run.selected_rows.empty() ? AfterContext(rows.residual, context, run)
                                   : AfterSelectedContext(rows.residual, context.rows, run);
}

PreparedRows EncoderLayer::AfterContext(MatrixView<float> residual, const PreparedRows& context,
                                        const LayerRun& run) const {
  const MatrixView<float> branch = attention_.Project(context, run);
  if (run.stage == AttendStage::kProjected) return branch;
  PreparedRows x = attention_norms_.Join(residual, branch, run);
  if (run.stage == AttendStage::kBlock) return x;
  for (const auto& [body, norms] : blocks_) {
    const MatrixView<float> made = body->Forward(norms.Enter(x, run), run);
    x = norms.Join(body->Residual(x.rows, run), made, run);
  }
  return x;
}

PreparedRows EncoderLayer::AfterSelectedContext(MatrixView<float> residual,
                                                MatrixView<float> context,
                                                const LayerRun& run) const {
  const absl::Span<const int32_t> rows = run.selected_rows;
  if (!run.stage) {
    for (const ResidualBlock& block : blocks_) block.body->KeepSelectedRows(run);
  }
  MatrixView<float> y = AfterContext(CompactRows(rows, residual), CompactRows(rows, context),
                                     run.AfterAttention(static_cast<int64_t>(rows.size())))
                            .rows;
  ExpandRows(rows, y);
  y.rows = residual.rows;
  return y;
}

}  // namespace attendant
