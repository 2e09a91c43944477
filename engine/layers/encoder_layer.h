// EncoderLayer: one layer of an encoder, which is a list of residual blocks: attention,
// feed-forward blocks, and what else a few models have.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/multi_head_attention.h"
#include "engine/layers/residual_block.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable once loaded, apart from ReplaceAttention and VisitNorms, and thread-safe. x is
// [PaddedRows(T), E] everywhere; layers with a residual add to it in place.
class EncoderLayer {
 public:
  // Reads and packs the weights whose names begin with `prefix`. For `distances` see
  // MultiHeadAttention::Load. Errors of `loader`.
  static absl::StatusOr<EncoderLayer> Load(const std::string& prefix, const LayerShape& shape,
                                           WeightLoader& loader,
                                           const AlignedBuffer<float>& distances = {});

  // Computes the layer, or the stage of its attention that the run has, and only the wanted rows of
  // the run if it has any, with the same bits; the other rows of the result may then hold anything.
  // Returns the rows that hold the output: x, or the attention's result if no residual was added.
  PreparedRows Forward(const PreparedRows& x, const LayerRun& run) const;

  // Makes the keys and values of cross-attention; see MultiHeadAttention::ProjectCrossKv.
  CrossKv ProjectCrossKv(const CrossKvRange& rows, Workspace& workspace) const {
    return attention_.ProjectCrossKv(rows, workspace);
  }

  // Replaces the attention by that of a layer of `shape`, which has fewer heads. Not for layers
  // with `distances`. Errors of `loader`.
  absl::Status ReplaceAttention(const std::string& prefix, const LayerShape& shape,
                                WeightLoader& loader);
  // Calls `visit` for each norm, which it may change.
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit);

  // Reserves the memory that the layer's products need for the largest batch of the run.
  void ReserveScratch(Workspace& workspace) const;
  int64_t bytes() const;
  int64_t attention_bytes() const { return attention_.bytes(); }
  const LayerShape& shape() const { return attention_.shape(); }

 private:
  explicit EncoderLayer(MultiHeadAttention attention) : attention_(std::move(attention)) {}

  // Computes what follows the context.
  PreparedRows AfterContext(MatrixView<float> residual, const PreparedRows& context,
                            const LayerRun& run) const;
  // Likewise, of the wanted rows alone.
  PreparedRows AfterWantedContext(MatrixView<float> residual, MatrixView<float> context,
                                  const LayerRun& run) const;

  MultiHeadAttention attention_;  // the body of the first block
  BlockNorms attention_norms_;
  std::vector<ResidualBlock> blocks_;  // the others
};

}  // namespace attendant
