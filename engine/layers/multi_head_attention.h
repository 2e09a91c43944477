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
  // Reads query, key and value into one fused projection, then the output projection if the layer
  // has one.
  static absl::StatusOr<MultiHeadAttention> Load(const std::string& prefix, const LayerShape& shape,
                                                 WeightLoader& loader);

  // The context layer, softmax(Q K^T scale) V with the heads side by side: [PaddedRows(T), C] in
  // the context buffer. x: [PaddedRows(T), E].
  MatrixView<float> Context(MatrixView<const float> x, RunState& run) const;

  // Context Wo^T + bo: [PaddedRows(T), E] in the branch buffer. Without an output projection this
  // is the context itself.
  MatrixView<float> Project(MatrixView<float> context, RunState& run) const;

  void ReserveScratch(RunState& run) const;
  int64_t bytes() const;

 private:
  MultiHeadAttention(const LayerShape& shape, PackedLinear qkv)
      : shape_(shape), qkv_(std::move(qkv)) {}

  LayerShape shape_;
  PackedLinear qkv_;                    // [H (2 Dk + Dv), E]
  std::optional<PackedLinear> output_;  // [E, C]
  std::optional<NormParameters> query_norm_;  // [H Dk]
  std::optional<NormParameters> key_norm_;    // [H Dk]
};

}  // namespace attendant
