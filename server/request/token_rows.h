// Rows of floats, one per token: hidden states, features, and the memory that queries attend to.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/model/model_description.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// Float rows, and their layout.
struct TokenRows {
  TokenLayout layout;
  CheckedTensor tensor;
  // The tensor holds images [B, 3, size, size]; their patches are the rows.
  bool are_pixels = false;
};

// Returns the fields of an AttendRequest, an EncodeRequest or a Memory, with `limits` for their
// order and number.
template <typename Message>
TokenFields TokenFieldsOf(const Message& message, const RequestPayloads& payloads,
                          TokenFields limits) {
  limits.lengths =
      absl::MakeConstSpan(message.lengths().data(), static_cast<size_t>(message.lengths_size()));
  if (message.has_attention_mask()) {
    limits.attention_mask.emplace(payloads.Of(limits.scope + "attention_mask",
                                              message.attention_mask(),
                                              Message::kAttentionMaskFieldNumber));
  }
  return limits;
}

// Checks rows of `width` columns: [B, S, width] or [S, B, width], or [T, width] with lengths.
absl::StatusOr<TokenRows> CheckTokenRows(const WireTensor& rows, int64_t width,
                                         const TokenFields& fields);

// Checks images [B, 3, image_size, image_size]; each patch is a row of the layout.
absl::StatusOr<TokenRows> CheckPixels(const WireTensor& images, const PatchEmbeddingShape& patches,
                                      const TokenFields& fields);

// Rows to which the queries of a request attend instead of their own sequences: `memory` on the
// wire.
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
