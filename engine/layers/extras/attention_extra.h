// AttentionExtra: weights that only some kinds of attention have.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/aligned_buffer.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Reads the relative position embeddings, which all layers project, and applies their norm. Returns
// [position rows, E], in memory for PaddedRows of them. Called once for a model with disentangled
// attention.
AlignedBuffer<float> ReadDistanceTable(const LayerShape& shape, WeightLoader& loader);

// The weights that a layer's kind of attention needs in addition to its projections. Immutable and
// thread-safe. Weights that this kind does not have are empty.
class AttentionExtra {
 public:
  AttentionExtra() = default;
  // `qkv` is the fused input projection and may be empty. Disentangled attention requires
  // `distances`, which ReadDistanceTable returned: projects it with the layer's projections of
  // relative positions, which are then freed, or with `qkv` if they are shared, in the compute mode
  // of the layer.
  AttentionExtra(const std::string& prefix, const LayerShape& shape, const PackedLinear& qkv,
                 const AlignedBuffer<float>& distances, WeightLoader& loader);

  // Adds these weights to the kernel's input.
  void AddTo(AttentionInput& input, const LayerRun& run) const;

 private:
  void LoadPositions(const std::string& prefix, const LayerShape& shape, const PackedLinear& qkv,
                     const AlignedBuffer<float>& distances, WeightLoader& loader);

  // The weights w [H Dk] of additive attention, whose scores are w . tanh(q + k): Bahdanau et al.
  // 2015, section A.1.2.
  SharedBuffer<float> score_weights_;
  // The matrices [k, positions] that project the keys and the values of a sequence to k rows: Wang
  // et al. 2020 (Linformer), section 4.
  int64_t mixed_positions_ = 0;
  SharedBuffer<float> key_mixing_;
  SharedBuffer<float> value_mixing_;
  // The keys and queries of relative positions [position rows, H Dk] that disentangled attention
  // scores tokens against: He et al. 2021 (DeBERTa), section 3.1. Empty if it does not score
  // queries or keys.
  int64_t position_width_ = 0;
  SharedBuffer<float> position_keys_;
  SharedBuffer<float> position_queries_;
};

}  // namespace attendant
