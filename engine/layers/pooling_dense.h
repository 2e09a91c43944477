// Linear layers that some models apply to a pooled vector, or to each token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/activation.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// One such layer. Immutable and thread-safe. It computes one vector at a time on the calling
// thread, as a plain product with float64 sums; packing the weight would gain nothing.
class PoolingDense {
 public:
  // Loads the layers of the pooling `name` in the order of their use, if it has any.
  static absl::StatusOr<std::vector<PoolingDense>> LoadAll(const std::string& name,
                                                           const PoolingDescription& pooling,
                                                           const LayerShape& layer,
                                                           WeightLoader& loader);

  // Returns norm(activation(W source [in] + b)), [out].
  std::vector<float> Forward(absl::Span<const float> source) const;

  // Calls `visit` for each norm, which it may change.
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) {
    if (norm_) visit(*norm_);
  }

  int64_t bytes() const { return weight_.bytes() + bias_.bytes() + (norm_ ? norm_->bytes() : 0); }

 private:
  PoolingDense(int64_t out, Activation activation) : out_(out), activation_(activation) {}
  static absl::StatusOr<PoolingDense> Load(const std::string& name, int64_t in, PoolingDense layer,
                                           WeightLoader& loader);

  int64_t out_;
  Activation activation_;
  SharedBuffer<float> weight_;  // [out, in]
  SharedBuffer<float> bias_;    // [out], or empty
  std::optional<NormParameters> norm_;
};

}  // namespace attendant
