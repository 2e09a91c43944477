// The choice and the loading of the AttentionExtra of a layer.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/extras/attention_extra.h"

namespace attendant {

// Returns what the kind of attention needs in addition to its projections; null if that is nothing.
// `qkv` is the fused input projection, or null if there is none; for `distances` see
// MultiHeadAttention::Load. Errors of `loader`.
absl::StatusOr<std::shared_ptr<const AttentionExtra>> LoadAttentionExtra(
    const std::string& prefix, const LayerShape& shape, const PackedLinear* qkv,
    const AlignedBuffer<float>& distances, WeightLoader& loader);

}  // namespace attendant
