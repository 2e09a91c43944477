// AttentionExtra: weights that only some kinds of attention have.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe.
class AttentionExtra {
 public:
  virtual ~AttentionExtra() = default;

  // Adds these weights to the kernel's input.
  virtual void AddTo(AttentionInput& input, const LayerRun& run) const = 0;
};

// Returns the weights that the layer's kind of attention needs in addition to its projections, or
// null if it needs none. `qkv` is the fused input projection and may be null. See
// MultiHeadAttention::Load for `distances`. Returns the errors of `loader`.
absl::StatusOr<std::shared_ptr<const AttentionExtra>> LoadAttentionExtra(
    const std::string& prefix, const LayerShape& shape, const PackedLinear* qkv,
    const AlignedBuffer<float>& distances, WeightLoader& loader);

}  // namespace attendant
