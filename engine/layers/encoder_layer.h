// One encoder layer: attention and feed-forward, each with its residual and norm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/checkpoint/model_description.h"
#include "engine/layers/batch.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/multi_head_attention.h"
#include "engine/layers/run_state.h"
#include "engine/layers/weight_loader.h"

namespace attendant {

// Immutable, thread-safe. x is [PaddedRows(T), E] everywhere; layers with a residual add to it in
// place.
class EncoderLayer {
 public:
  static absl::StatusOr<EncoderLayer> Load(const std::string& prefix, const LayerShape& shape,
                                           WeightLoader& loader);

  // The whole layer. Returns where its output is: x, or the attention's result for a layer without
  // residuals.
  MatrixView<float> Forward(MatrixView<float> x, RunState& run) const;

  // The same for the wanted rows of the batch alone: the other rows of the result hold anything.
  // Their bits are those that Forward gives.
  MatrixView<float> ForwardWanted(MatrixView<float> x, const PackedBatch& batch,
                                  RunState& run) const;

  // Its first half, with residual and norm as the layer has them. Returns as Forward does.
  MatrixView<float> AttentionBlock(MatrixView<float> x, RunState& run) const;

  // What the attention alone makes of what enters it: norm(x) in a pre-norm layer, else x.
  MatrixView<float> Context(MatrixView<float> x, RunState& run) const;
  MatrixView<float> Projected(MatrixView<float> x, RunState& run) const;

  AttentionMemory ProjectMemory(const MemoryRows& memory, RunState& run) const {
    return attention_.ProjectMemory(memory, run);
  }

  // Those that the loader's source has; see WeightLoader::ReplaceNorm.
  absl::Status ReplaceNorms(WeightLoader& loader);

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  EncoderLayer(NormPlacement placement, MultiHeadAttention attention)
      : placement_(placement), attention_(std::move(attention)) {}

  MatrixView<float> FeedForwardBlock(MatrixView<float> x, RunState& run) const;
  MatrixView<float> EntryOf(const std::optional<NormParameters>& norm, MatrixView<float> x,
                            RunState& run) const;
  MatrixView<float> JoinAttention(MatrixView<float> x, MatrixView<float> branch,
                                  RunState& run) const;
  MatrixView<float> AddAndNorm(MatrixView<float> x, MatrixView<float> branch,
                               const std::optional<NormParameters>& norm, RunState& run) const;

  NormPlacement placement_;
  MultiHeadAttention attention_;
  std::optional<NormParameters> attention_norm_;
  std::optional<NormParameters> second_attention_norm_;
  std::optional<FeedForward> feed_forward_;
  std::optional<NormParameters> feed_forward_norm_;
};

}  // namespace attendant
