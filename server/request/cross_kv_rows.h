// Rows that the queries of a request attend to instead of their own sequences: `memory` on the
// wire.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/model/model_description.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

struct CrossKvRows {
  TokenLayout layout;  // of either tensor
  CheckedTensor hidden_states;
  std::optional<CheckedTensor> values = {};  // none: made of hidden_states too

  // Rows of both tensors together: with padding, and the kept ones.
  int64_t rows() const { return layout.rows * (values ? 2 : 1); }
  int64_t tokens() const { return layout.tokens() * (values ? 2 : 1); }
};

// The limits that rows are checked against: the layer that attends to them, the most rows, of
// hidden states and values together, and their order.
struct CrossKvClaims {
  const LayerShape& layer;
  int64_t max_tokens;
  bool sequence_first;
};

// INVALID_ARGUMENT: the layer has no cross-attention, or a tensor breaks a rule of the field.
// `payloads` are those of `memory`.
absl::StatusOr<CrossKvRows> CheckCrossKvRows(const v1::Memory& memory,
                                             const RequestPayloads& payloads,
                                             const CrossKvClaims& claims);

// INVALID_ARGUMENT, with the reason, if such a layer has nothing but cross-attention.
absl::Status CheckNeedsNoCrossKv(const LayerShape& layer);

}  // namespace attendant::server
