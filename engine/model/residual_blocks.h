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

// A norm of a block.
struct BlockNormShape {
  std::string name;  // of its weights, without "layer.<weight set>."
  float epsilon = 0;
};

// One block, x = after(x + on_branch(body(before(x)))), in which each norm is optional. The norms
// of attention are
//   before "attention_norm"                                                  in a pre-norm layer
//   after "attention_norm"                                                   in a post-norm layer
//   before "attention_norm" and on_branch "attention_branch_norm"            in a sandwich layer
// The norms of a feed-forward block or a mixture of experts are "feed_forward_norm" and
// "feed_forward_branch_norm", after the prefix of the block.
struct ResidualBlockShape {
  BlockBodyKind body = BlockBodyKind::kAttention;
  std::string prefix = {};  // of the names of the body's weights: FeedForwardPrefix or ""
  int64_t width = 0;        // of x
  std::optional<BlockNormShape> before = {};
  std::optional<BlockNormShape> on_branch = {};
  std::optional<BlockNormShape> after = {};
  bool has_residual = true;  // if false, the block computes body(x)
  // x = after(x + on_branch(x + body(x))): LayerExtras::has_second_attention_norm.
  bool adds_before_branch_norm = false;
};

// Returns the blocks of a layer. Attention is the first one. A bottleneck or a convolution is the
// last one: a bottleneck adds its output to the layer's input, and a convolution adds the convolved
// input of the layer.
std::vector<ResidualBlockShape> ListBlocks(const LayerShape& shape);

// Returns the prefix of the names of the i-th feed-forward block of a layer.
std::string FeedForwardPrefix(const std::string& prefix, const LayerShape& shape, int64_t i);

// Returns the prefix of the names of the i-th expert of a mixture.
std::string ExpertPrefix(const std::string& prefix, int64_t i);

}  // namespace attendant
