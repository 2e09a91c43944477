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

// Checks rows to which this layer attends. Returns INVALID_ARGUMENT if it has no cross-attention,
// if there are too many rows (of hidden states and values together), or if a tensor breaks a rule
// of its field. `payloads` are the payloads inside `memory`.
absl::StatusOr<CrossKvRows> CheckCrossKvRows(const v1::Memory& memory,
                                             const RequestPayloads& payloads,
                                             const LayerShape& layer, TokenFields limits);

// Returns INVALID_ARGUMENT if the layer requires cross-attention.
absl::Status CheckNeedsNoCrossKv(const LayerShape& layer);

}  // namespace attendant::server
