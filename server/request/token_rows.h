// Rows of floats, one per token, and the kept ones.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/model/model_description.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// Float rows, and their layout.
struct TokenRows {
  TokenLayout layout;
  CheckedTensor tensor;
  bool are_pixels =
      false;  // the tensor holds images [B, 3, size, size]; their patches are the rows
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

}  // namespace attendant::server
