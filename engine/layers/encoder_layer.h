// EncoderLayer: one layer of an encoder, which is an attention block and a feed-forward block, each
// with its residual connection and norm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/extras/layer_extra.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/multi_head_attention.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// The part of a layer that is computed, from its input on.
enum class LayerPart {
  kContext,         // the context alone, made of norm(x) in a pre-norm layer
  kProjected,       // the context and the output projection
  kAttentionBlock,  // the attention block with residual and norm as the layer has them
  kWhole
};

// Immutable once loaded, apart from ReplaceAttention and VisitNorms, and thread-safe. x is
// [PaddedRows(T), E] everywhere; layers with a residual add to it in place.
class EncoderLayer {
 public:
  // Reads and packs the weights whose names begin with `prefix`. For `distances` see
  // MultiHeadAttention::Load. Errors of `loader`.
  static absl::StatusOr<EncoderLayer> Load(const std::string& prefix, const LayerShape& shape,
                                           WeightLoader& loader,
                                           const AlignedBuffer<float>& distances = {});

  // Computes the layer, or only the wanted rows of the run if it has any, with the same bits; the
  // other rows of the result may then hold anything. Returns the rows that hold the output: x, or
  // the attention's result if no residual was added. `next` is the entry() of the layer that takes
  // the output of the whole layer, or null.
  PreparedRows Forward(LayerPart part, const PreparedRows& x, const PackedLinear* next,
                       const LayerRun& run) const;

  // The product that reads the layer's input, if it is the only one to do so, else null; see
  // LayerRun::Prepare.
  const PackedLinear* entry() const;

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
  struct NormedFeedForward {
    FeedForward block;
    NormParameters norm;
  };

  EncoderLayer(NormPlacement placement, MultiHeadAttention attention)
      : placement_(placement), attention_(std::move(attention)) {}

  absl::Status LoadAttentionNorms(const std::string& prefix, const LayerShape& shape,
                                  WeightLoader& loader);
  absl::Status LoadFeedForwards(const std::string& prefix, const LayerShape& shape,
                                WeightLoader& loader);

  BlockRows Enter(LayerPart part, const PreparedRows& x, const LayerRun& run) const;
  PreparedRows Context(const PreparedRows& entry, MatrixView<float> x, const LayerRun& run) const;
  // The layer's input, the rows that the attention's output is added to, and the attention's
  // context.
  struct Attended {
    MatrixView<float> x, residual;
    PreparedRows context;
  };
  // Forward for a run with wanted rows.
  MatrixView<float> ForwardWanted(LayerPart part, const PreparedRows& x, const LayerRun& run) const;
  // Computes the part of the layer that comes after the context.
  PreparedRows FromContext(LayerPart part, const Attended& attended, const PackedLinear* next,
                           const LayerRun& run) const;
  // The product that reads the input of feed-forward block `block` or, after the last block, the
  // rows that go on to `next`; null if there is none.
  const PackedLinear* ReaderAt(size_t block, const PackedLinear* next) const;
  PreparedRows FeedForwardBlock(const NormedFeedForward& feed_forward, const PreparedRows& x,
                                const PackedLinear* reader, const LayerRun& run) const;
  PreparedRows EntryOf(const NormParameters& norm, const PreparedRows& x,
                       const PackedLinear* reader, const LayerRun& run) const;
  PreparedRows JoinAttention(MatrixView<float> x, MatrixView<float> branch,
                             const PackedLinear* reader, const LayerRun& run) const;
  MatrixView<float> Add(MatrixView<float> x, MatrixView<float> branch, const LayerRun& run) const;
  PreparedRows AddAndNorm(MatrixView<float> x, MatrixView<float> branch, const NormParameters& norm,
                          const PackedLinear* reader, const LayerRun& run) const;

  NormPlacement placement_;
  MultiHeadAttention attention_;
  std::optional<NormParameters> attention_norm_;
  std::optional<NormParameters> second_attention_norm_;
  std::vector<NormedFeedForward> feed_forwards_;  // one in most models
  std::shared_ptr<const LayerExtra> extra_;       // or null
};

}  // namespace attendant
