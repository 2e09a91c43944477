// Rows to which the queries of a request attend instead of their own sequences: `memory` on the
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
  TokenLayout layout;  // of both tensors
  CheckedTensor hidden_states;
  std::optional<CheckedTensor> values = {};  // if not set, values are projected from hidden_states

  // Rows of both tensors together: all, including padding, and kept.
  int64_t rows() const { return layout.rows * (values ? 2 : 1); }
  int64_t tokens() const { return layout.tokens() * (values ? 2 : 1); }
};

// Limits for the rows: the layer that attends to them, the maximum number of rows (of hidden states
// and values together) with its name in messages, and their order.
struct CrossKvClaims {
  const LayerShape& layer;
  int64_t max_tokens;
  const char* limit;
  bool sequence_first;
};

// Returns INVALID_ARGUMENT if the layer has no cross-attention or a tensor breaks a rule of its
// field. `payloads` are the payloads inside `memory`.
absl::StatusOr<CrossKvRows> CheckCrossKvRows(const v1::Memory& memory,
                                             const RequestPayloads& payloads,
                                             const CrossKvClaims& claims);

// Returns INVALID_ARGUMENT if the layer requires cross-attention.
absl::Status CheckNeedsNoCrossKv(const LayerShape& layer);

}  // namespace attendant::server
