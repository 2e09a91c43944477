// EncoderLayer: one layer of an encoder, which is a list of residual blocks: attention, then
// feed-forward blocks and, in a few models, a convolution or a bottleneck.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/matrix_view.h"
#include "engine/layers/extras/bottleneck.h"
#include "engine/layers/multi_head_attention.h"
#include "engine/layers/residual_block.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

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
  // Computes the rest of the layer from the context.
  PreparedRows AfterContext(MatrixView<float> residual, const PreparedRows& context,
                            const LayerRun& run) const;
  // Likewise, but only for the selected rows.
  PreparedRows AfterSelectedContext(MatrixView<float> residual, MatrixView<float> context,
                                    const LayerRun& run) const;

  std::shared_ptr<Bottleneck> bottleneck_;  // also the last block; null if there is none
  MultiHeadAttention attention_;            // the body of the first block
  BlockNorms attention_norms_;
  std::vector<ResidualBlock> blocks_;  // the blocks after the attention
};

}  // namespace attendant
