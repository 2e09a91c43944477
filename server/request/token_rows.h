// Rows of floats, one per token, and the kept ones.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/model/model_description.h"
#include "server/request/shared_tensors.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// Float rows, and their layout.
struct TokenRows {
  TokenLayout layout;
  CheckedTensor tensor;
};

// Checks rows of `width` columns: [B, S, width] or [S, B, width], or [T, width] with lengths.
absl::StatusOr<TokenRows> CheckTokenRows(const WireTensor& rows, int64_t width,
                                         const SharedTensors& shared, int64_t max_tokens);

// Checks images [B, 3, image_size, image_size]; each patch is a row of the layout.
absl::StatusOr<TokenRows> CheckPixels(const WireTensor& images, const PatchEmbeddingShape& patches,
                                      const SharedTensors& shared, int64_t max_tokens);

}  // namespace attendant::server
