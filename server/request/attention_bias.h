// attention_bias of a request, checked on arrival and converted when its batch is gathered.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/attention/attention.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// Returns INVALID_ARGUMENT unless the tensor is a float tensor that broadcasts to `full`: [B, H, S,
// S], or [B, H, S, M] with `has_cross_kv`.
absl::StatusOr<CheckedTensor> CheckBias(const WireTensor& tensor, absl::Span<const int64_t> full,
                                        bool has_cross_kv);

// The values as float32, and one view per sequence. Move-only; the views point into the values and
// the layout.
class GatheredBias {
 public:
  // Gathers the bias for the sequences of `layout`. The first is sequence `first_sequence` of the
  // bias, which has passed CheckBias. Returns INVALID_ARGUMENT for the first NaN or plus infinity.
  static absl::StatusOr<GatheredBias> Gather(const CheckedTensor& bias, const TokenLayout& layout,
                                             int64_t first_sequence);

  // [B].
  absl::Span<const AttentionBias> sequences() const { return sequences_; }

 private:
  AlignedBuffer<float> values_;
  std::vector<AttentionBias> sequences_;
};

}  // namespace attendant::server
