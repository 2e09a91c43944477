// Copies the rows of one request's tensors into the inputs of a run.
#pragma once

#include "absl/status/status.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/encoder.h"
#include "server/request/cross_kv_rows.h"
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

class RowGatherer {
 public:
  // With kReject, both functions return INVALID_ARGUMENT for the first value that is not finite.
  explicit RowGatherer(NonfinitePolicy policy) : policy_(policy) {}

  absl::Status Gather(const NamedRows& from, MatrixView<float> rows);

  // Copies to the current end of `place`.
  absl::Status GatherCrossKv(const CrossKvRows& from, const CrossKvRange& place, EncoderRun& run);

  // Returns true if any value was not finite.
  bool nonfinite() const { return nonfinite_; }

 private:
  const NonfinitePolicy policy_;
  bool nonfinite_ = false;
};

}  // namespace attendant::server
