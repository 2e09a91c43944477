// The memory of a request: rows that its queries attend to instead of their own sequences.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/model/model_description.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

struct MemoryInput {
  TokenLayout layout;  // of either tensor
  CheckedTensor hidden_states;
  std::optional<CheckedTensor> values = {};  // none: made of hidden_states too

  // Of both tensors together: all, and those that are kept.
  int64_t rows() const { return layout.rows * (values ? 2 : 1); }
  int64_t tokens() const { return layout.tokens() * (values ? 2 : 1); }
};

// What the memory goes to, the most rows, of hidden states and values together, that it may have,
// and the order in which it has them.
struct MemoryClaims {
  const LayerShape& layer;
  int64_t max_tokens;
  bool sequence_first;
};

// INVALID_ARGUMENT: the layer takes no memory, or a tensor breaks a rule of the field. `payloads`
// are those of the memory.
absl::StatusOr<MemoryInput> CheckMemory(const v1::Memory& memory, const RequestPayloads& payloads,
                                        const MemoryClaims& claims);

// INVALID_ARGUMENT, with the reason, if such a layer takes no memory.
absl::Status CheckTakesMemory(const LayerShape& layer);

// INVALID_ARGUMENT, with the reason, if such a layer takes nothing else.
absl::Status CheckNeedsNoMemory(const LayerShape& layer);

}  // namespace attendant::server
