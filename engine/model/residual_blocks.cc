#include "engine/model/residual_blocks.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

// Returns a block with norms placed as in the layer. Their names begin with `name`.
ResidualBlockShape NormedBlock(const LayerShape& shape, const std::string& name, float epsilon) {
  ResidualBlockShape block = {.width = shape.inner_width()};
  const BlockNormShape norm = {name + "_norm", epsilon};
  switch (shape.norms.placement) {
    case NormPlacement::kPost:
      block.after = norm;
      break;
    case NormPlacement::kPre:
      block.before = norm;
      break;
    case NormPlacement::kSandwich:
      block.before = norm;
      block.on_branch = {name + "_branch_norm", epsilon};
      break;
    case NormPlacement::kNone:
      block.has_residual = false;
      break;
  }
  return block;
}

ResidualBlockShape AttentionBlock(const LayerShape& shape) {
  ResidualBlockShape block = NormedBlock(shape, "attention", shape.norms.epsilon);
  if (!shape.norms.has_attention_norm) block.before.reset();
  if (shape.extras.has_second_attention_norm) {
    block.on_branch =
        std::exchange(block.after, BlockNormShape{"second_attention_norm", shape.norms.epsilon});
    block.adds_before_branch_norm = true;
  }
  return block;
}

ResidualBlockShape FeedForwardBlock(const LayerShape& shape, int64_t i) {
  const std::string prefix = FeedForwardPrefix("", shape, i);
  const bool is_last = i + 1 == shape.feed_forward.blocks;
  const float epsilon =
      is_last && shape.norms.last_epsilon > 0 ? shape.norms.last_epsilon : shape.norms.epsilon;
  ResidualBlockShape block = NormedBlock(shape, prefix + "feed_forward", epsilon);
  block.body = shape.feed_forward.mixture.experts > 0 ? BlockBodyKind::kMixture
                                                      : BlockBodyKind::kFeedForward;
  block.prefix = prefix;
  return block;
}

ResidualBlockShape LastBlock(const LayerShape& shape, BlockBodyKind body, const char* norm) {
  return {
      .body = body, .width = shape.hidden_size, .after = BlockNormShape{norm, shape.norms.epsilon}};
}

}  // namespace

std::vector<ResidualBlockShape> ListBlocks(const LayerShape& shape) {
  std::vector<ResidualBlockShape> blocks = {AttentionBlock(shape)};
  for (int64_t i = 0; shape.feed_forward.width != 0 && i < shape.feed_forward.blocks; ++i) {
    blocks.push_back(FeedForwardBlock(shape, i));
  }
  if (shape.extras.bottleneck.width > 0) {
    blocks.push_back(LastBlock(shape, BlockBodyKind::kBottleneckOut, "bottleneck_out_norm"));
  }
  if (shape.extras.convolution.taps > 0) {
    blocks.push_back(LastBlock(shape, BlockBodyKind::kConvolution, "convolution_norm"));
  }
  return blocks;
}

std::string FeedForwardPrefix(const std::string& prefix, const LayerShape& shape, int64_t i) {
  return i + 1 == shape.feed_forward.blocks ? prefix : absl::StrCat(prefix, "before.", i, ".");
}

std::string ExpertPrefix(const std::string& prefix, int64_t i) {
  return absl::StrCat(prefix, "expert.", i, ".");
}

}  // namespace attendant
