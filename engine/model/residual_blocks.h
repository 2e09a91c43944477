// The residual blocks of a layer, in the order in which they run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model_description.h"

namespace attendant {

// The computation of a residual block.
enum class BlockBodyKind { kAttention, kFeedForward, kMixture, kBottleneckOut, kConvolution };

// A norm of a block, by the name of its weights without "layer.<weight set>.".
struct BlockNormShape {
  std::string name;
  float epsilon = 0;
};

// One block, x = after(x + on_branch(body(before(x)))), with the norms that it has. The names of
// the norms of attention are
//   before "attention_norm"                                                  in a pre-norm layer
//   after "attention_norm"                                                   in a post-norm layer
//   before "attention_norm" and on_branch "attention_branch_norm"            in a sandwich layer
// and those of a feed-forward block, or of a mixture of experts, are named alike,
// "feed_forward_norm" and "feed_forward_branch_norm", after the prefix of the block.
struct ResidualBlockShape {
  BlockBodyKind body = BlockBodyKind::kAttention;
  std::string prefix = {};  // of the names of the body's weights: that of FeedForwardPrefix, or ""
  int64_t width = 0;        // of x
  std::optional<BlockNormShape> before = {};
  std::optional<BlockNormShape> on_branch = {};
  std::optional<BlockNormShape> after = {};
  bool has_residual = true;  // false: the block is body(x) alone
  // x = after(x + on_branch(x + body(x))): LayerExtras::has_second_attention_norm.
  bool adds_before_branch_norm = false;
};

// Attention is the first block of every layer. A bottleneck or a convolution is the last one, and
// adds to the layer's input, or the convolution of this, to the rows.
std::vector<ResidualBlockShape> ListBlocks(const LayerShape& shape);

// Before the names of the i-th feed-forward block of a layer.
std::string FeedForwardPrefix(const std::string& prefix, const LayerShape& shape, int64_t i);

// Before the names of the i-th expert of a mixture.
std::string ExpertPrefix(const std::string& prefix, int64_t i);

}  // namespace attendant
