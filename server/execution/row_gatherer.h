// Copies rows of a request's tensors into the inputs of a run.
#pragma once

#include "absl/status/status.h"
#include "engine/base/matrix_view.h"
#include "engine/model/model_description.h"
#include "server/settings/settings.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// A tensor of the request, and its kept rows.
struct NamedRows {
  const char* field;
  const CheckedTensor& tensor;
  const TokenLayout& layout;
  // If not null, the tensor holds images [B, 3, H, W], and each row is a patch.
  const PatchEmbeddingShape* patches = nullptr;
};

// Copies the kept rows to `rows`, and sets `nonfinite` if a value is not finite. With kReject,
// returns INVALID_ARGUMENT for the first such value.
absl::Status GatherRows(const NamedRows& from, NonfinitePolicy policy, MatrixView<float> rows,
                        bool& nonfinite);

}  // namespace attendant::server
