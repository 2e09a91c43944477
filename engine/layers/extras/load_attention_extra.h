// Loads the AttentionExtra of a layer.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/extras/attention_extra.h"

namespace attendant {

// Returns the weights that the layer's kind of attention needs in addition to its projections, or
// null if it needs none. `qkv` is the fused input projection and may be null. See
// MultiHeadAttention::Load for `distances`. Returns the errors of `loader`.
absl::StatusOr<std::shared_ptr<const AttentionExtra>> LoadAttentionExtra(
    const std::string& prefix, const LayerShape& shape, const PackedLinear* qkv,
    const AlignedBuffer<float>& distances, WeightLoader& loader);

}  // namespace attendant
