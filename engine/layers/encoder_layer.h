// EncoderLayer: one layer of an encoder, which is a list of residual blocks: attention, then
// feed-forward blocks and, in a few models, a convolution or a bottleneck.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/matrix_view.h"
#include "engine/layers/multi_head_attention.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/layer_kinds.h"
#include "engine/model/model_description.h"
#include "engine/model/residual_blocks.h"

namespace attendant {

class Bottleneck;

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

// Thread-safe once loaded: only ReplaceAttention changes it. x is [T, E] everywhere; layers with a
// residual add to it in place.
class EncoderLayer {
 public:
  // Reads and packs the weights whose names begin with `prefix`. See MultiHeadAttention for
  // `distances`.
  EncoderLayer(const std::string& prefix, const LayerShape& shape, WeightLoader& loader,
               const AlignedBuffer<float>& distances = {});

  // Computes the layer, or the attention stage that the run has. If the run has selected rows,
  // computes only those, with the same bits, and leaves the other rows of the result undefined.
  // Returns the rows that hold the output: x, or the attention's result if there is no residual.
  PreparedRows Forward(const PreparedRows& x, const LayerRun& run) const;

  // Computes cross-attention keys and values; see MultiHeadAttention::ProjectCrossKv.
  CrossKv ProjectCrossKv(const CrossKvRange& rows, Workspace& workspace) const {
    return attention_.ProjectCrossKv(rows, workspace);
  }

  // Replaces the attention by one of `shape`, which has fewer heads. Layers with disentangled
  // attention do not support it.
  void ReplaceAttention(const std::string& prefix, const LayerShape& shape, WeightLoader& loader) {
    attention_ = MultiHeadAttention(prefix, shape, loader);
  }

 private:
  // `bottleneck`, whose input layers are already loaded, is null if the layer has none.
  EncoderLayer(const std::string& prefix, const LayerShape& shape, WeightLoader& loader,
               const AlignedBuffer<float>& distances,
               const std::shared_ptr<Bottleneck>& bottleneck);

  // Computes the rest of the layer from the context.
  PreparedRows AfterContext(MatrixView<float> residual, const PreparedRows& context,
                            const LayerRun& run) const;
  // Likewise, but only for the selected rows.
  PreparedRows AfterSelectedContext(MatrixView<float> residual, MatrixView<float> context,
                                    const LayerRun& run) const;

  MultiHeadAttention attention_;  // the body of the first block
  BlockNorms attention_norms_;
  std::vector<ResidualBlock> blocks_;  // the blocks after the attention
};

}  // namespace attendant
