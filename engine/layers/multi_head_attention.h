// Multi-head self-attention: Vaswani et al. 2017, section 3.2.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/checkpoint/model_description.h"
#include "engine/kernels/gemm.h"
#include "engine/layers/run_state.h"
#include "engine/layers/weight_loader.h"

namespace attendant {

// Immutable, thread-safe.
class MultiHeadAttention {
 public:
  // Reads the layer's input projections into one fused one, then its output projection, as far as
  // it has them.
  static absl::StatusOr<MultiHeadAttention> Load(const std::string& prefix, const LayerShape& shape,
                                                 WeightLoader& loader);

  // The context layer, softmax(Q K^T scale) V with the heads side by side: [PaddedRows(T), C] in
  // the context buffer. x: [PaddedRows(T), E].
  MatrixView<float> Context(MatrixView<const float> x, RunState& run) const;

  // Context Wo^T + bo: [PaddedRows(T), output width] in the branch buffer. Without an output
  // projection this is the context itself.
  MatrixView<float> Project(MatrixView<float> context, RunState& run) const;

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  explicit MultiHeadAttention(const LayerShape& shape) : shape_(shape) {}

  // Queries, keys and values of the kept rows, with positions in them.
  MatrixView<const float> ProjectInput(MatrixView<const float> x, RunState& run) const;

  LayerShape shape_;
  std::optional<PackedLinear> qkv_;           // [H (2 Dk + Dv), E], less what is shared
  std::optional<PackedLinear> output_;        // [output width, C]
  std::optional<NormParameters> query_norm_;  // [H Dk]
  std::optional<NormParameters> key_norm_;    // [H Dk]
};

}  // namespace attendant
