// One encoder layer: attention and feed-forward, each with its residual and norm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/multi_head_attention.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/run_state.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/token_convolution.h"
#include "engine/model/model_description.h"

namespace attendant {

// How far a layer is run.
enum class LayerPart {
  kContext,         // what the attention alone makes of what enters it: norm(x) in a pre-norm layer
  kProjected,       // through the output projection
  kAttentionBlock,  // with residual and norm as the layer has them
  kWhole
};

// Immutable, thread-safe. x is [PaddedRows(T), E] everywhere; layers with a residual add to it in
// place.
class EncoderLayer {
 public:
  // `distances`: see MultiHeadAttention::Load.
  static absl::StatusOr<EncoderLayer> Load(const std::string& prefix, const LayerShape& shape,
                                           WeightLoader& loader,
                                           const AlignedBuffer<float>& distances = {});

  // Returns where the output is: x, or the attention's result where no residual was added. `next`
  // is the entry() of the layer that takes the whole layer's output, or null.
  PreparedRows Forward(LayerPart part, const PreparedRows& x, const PackedLinear* next,
                       RunState& run) const;

  // The same for the wanted rows of the batch alone: the other rows of the result hold anything.
  // Their bits are those that Forward gives.
  MatrixView<float> ForwardWanted(LayerPart part, const PreparedRows& x, const PackedBatch& batch,
                                  RunState& run) const;

  // The one product that reads what enters the layer, or null: see RunState::Prepare.
  const PackedLinear* entry() const;

  CrossKv ProjectCrossKv(const CrossKvRows& rows, RunState& run) const {
    return attention_.ProjectCrossKv(rows, run);
  }

  // By that of a layer of `shape`, which has fewer heads, and no distances.
  absl::Status ReplaceAttention(const std::string& prefix, const LayerShape& shape,
                                WeightLoader& loader);
  // Those that the loader's source has; see WeightLoader::ReplaceNorm.
  absl::Status ReplaceNorms(WeightLoader& loader);

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;
  int64_t attention_bytes() const { return attention_.bytes(); }

 private:
  // A linear layer and a norm.
  struct NormedLinear {
    static absl::StatusOr<NormedLinear> Load(const std::string& name, int64_t out, int64_t in,
                                             const LayerShape& shape, WeightLoader& loader);
    // norm(y W^T + b) in `target`, one of the run's buffers.
    MatrixView<float> Apply(MatrixView<const float> x, MatrixView<float> target,
                            RunState& run) const;
    int64_t bytes() const { return linear.bytes() + norm.bytes(); }

    PackedLinear linear;
    NormParameters norm;
  };
  // Around attention and feed-forward blocks: x = norm(x + out(blocks(norm(in(x))))).
  struct Bottleneck {
    NormedLinear in;
    std::optional<NormedLinear> attention = {};  // makes queries and keys; values come from outside
    std::optional<NormedLinear> out = {};        // loaded last
  };
  struct NormedFeedForward {
    FeedForward block;
    NormParameters norm;
  };

  EncoderLayer(NormPlacement placement, MultiHeadAttention attention)
      : placement_(placement), attention_(std::move(attention)) {}

  static absl::StatusOr<std::optional<Bottleneck>> LoadBottleneck(const std::string& prefix,
                                                                  const LayerShape& shape,
                                                                  WeightLoader& loader);
  absl::Status LoadAttentionNorms(const std::string& prefix, const LayerShape& shape,
                                  WeightLoader& loader);
  absl::Status LoadFeedForwards(const std::string& prefix, const LayerShape& shape,
                                WeightLoader& loader);

  // What the attention's output is added to: x, or what is in the bottleneck.
  MatrixView<float> ResidualOf(MatrixView<float> x, RunState& run) const {
    return bottleneck_ ? run.Padded(run.activations.inner()) : x;
  }
  MatrixView<float> Context(const PreparedRows& x, RunState& run) const;
  // Of the whole layer; before anything is added to x.
  MatrixView<float> Convolve(LayerPart part, MatrixView<float> x, RunState& run) const;
  // What entered the layer, what the attention's output is added to, the attention's context, and
  // what the convolution made of x.
  struct Entered {
    MatrixView<float> x, residual, context, convolved;
  };
  PreparedRows FromContext(LayerPart part, const Entered& entered, const PackedLinear* next,
                           RunState& run) const;
  // From the residual of the feed-forward blocks to the layer's output.
  PreparedRows Finish(const Entered& entered, PreparedRows residual, const PackedLinear* next,
                      RunState& run) const;
  // What reads the rows that go from the feed-forward block before `block` to that one or, behind
  // the last, on to `next`.
  const PackedLinear* ReaderAt(size_t block, const PackedLinear* next) const;
  PreparedRows FeedForwardBlock(const NormedFeedForward& feed_forward, const PreparedRows& x,
                                const PackedLinear* reader, RunState& run) const;
  PreparedRows EntryOf(const NormParameters& norm, const PreparedRows& x,
                       const PackedLinear* reader, RunState& run) const;
  PreparedRows JoinAttention(MatrixView<float> x, MatrixView<float> branch,
                             const PackedLinear* reader, RunState& run) const;
  MatrixView<float> Add(MatrixView<float> x, MatrixView<float> branch, RunState& run) const;
  PreparedRows AddAndNorm(MatrixView<float> x, MatrixView<float> branch, const NormParameters& norm,
                          const PackedLinear* reader, RunState& run) const;

  NormPlacement placement_;
  MultiHeadAttention attention_;
  std::optional<NormParameters> attention_norm_;
  std::optional<NormParameters> second_attention_norm_;
  std::optional<Bottleneck> bottleneck_;
  std::vector<NormedFeedForward> feed_forwards_;
  std::optional<TokenConvolution> convolution_;
};

}  // namespace attendant
