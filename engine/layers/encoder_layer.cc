#include "engine/layers/encoder_layer.h"

#include <memory>
#include <optional>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/layers/extras/bottleneck.h"
#include "engine/layers/extras/token_convolution.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/mixture_of_experts.h"
#include "engine/layers/state/rows.h"

namespace attendant {
namespace {

using LoadedBody = absl::StatusOr<std::shared_ptr<const BlockBody>>;

template <class Body>
LoadedBody ShareBody(absl::StatusOr<Body> loaded) {
  ASSIGN_OR_RETURN(Body body, std::move(loaded));
  return std::make_shared<const Body>(std::move(body));
}

// Loads the body of a block that follows the attention. The input layers of `bottleneck` are
// already loaded.
LoadedBody LoadBody(const ResidualBlockShape& block, const std::string& prefix,
                    const LayerShape& shape, std::optional<Bottleneck>& bottleneck,
                    WeightLoader& loader) {
  switch (block.body) {
    case BlockBodyKind::kAttention:
      break;
    case BlockBodyKind::kFeedForward:
      return ShareBody(FeedForward::Load(prefix + block.prefix, shape, loader));
    case BlockBodyKind::kMixture:
      return ShareBody(MixtureOfExperts::Load(prefix + block.prefix, shape, loader));
    case BlockBodyKind::kBottleneckOut:
      return ShareBody(std::move(*bottleneck).WithOut(prefix, shape, loader));
    case BlockBodyKind::kConvolution:
      return ShareBody(TokenConvolution::Load(prefix, shape, loader));
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<EncoderLayer> EncoderLayer::Load(const std::string& prefix, const LayerShape& shape,
                                                WeightLoader& loader,
                                                const AlignedBuffer<float>& distances) {
  std::optional<Bottleneck> bottleneck;
  if (shape.extras.bottleneck.width > 0) {
    ASSIGN_OR_RETURN(bottleneck, Bottleneck::Load(prefix, shape, loader));
  }
  ASSIGN_OR_RETURN(MultiHeadAttention attention,
                   MultiHeadAttention::Load(prefix, shape, loader, distances));
  EncoderLayer layer(std::move(attention));
  for (const ResidualBlockShape& block : ListBlocks(shape)) {
    ASSIGN_OR_RETURN(std::shared_ptr<const BlockBody> body,
                     LoadBody(block, prefix, shape, bottleneck, loader));
    ASSIGN_OR_RETURN(BlockNorms norms, BlockNorms::Load(prefix, block, shape.norms.kind, loader));
    if (block.body == BlockBodyKind::kAttention) {
      layer.attention_norms_ = std::move(norms);
    } else {
      layer.blocks_.push_back({std::move(body), std::move(norms)});
    }
  }
  return layer;
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

absl::Status EncoderLayer::ReplaceAttention(const std::string& prefix, const LayerShape& shape,
                                            WeightLoader& loader) {
  ASSIGN_OR_RETURN(attention_, MultiHeadAttention::Load(prefix, shape, loader));
  return absl::OkStatus();
}

}  // namespace attendant
