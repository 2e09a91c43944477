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

// A tensor of the request and which of its rows are kept.
struct NamedRows {
  const char* field;
  const CheckedTensor& tensor;
  const TokenLayout& layout;
  // Not null: the tensor has the pixels of images, [B, 3, H, W], and each row is a patch of one.
  const PatchEmbeddingShape* patches = nullptr;
};

class RowGatherer {
 public:
  // With kReject, both functions return INVALID_ARGUMENT for the first value that is not finite.
  explicit RowGatherer(NonfinitePolicy policy) : policy_(policy) {}

  absl::Status Gather(const NamedRows& from, MatrixView<float> rows);

  // To where `place` ends so far.
  absl::Status GatherCrossKv(const CrossKvRows& from, const CrossKvRange& place, EncoderRun& run);

  // True once a value was not finite.
  bool nonfinite() const { return nonfinite_; }

 private:
  const NonfinitePolicy policy_;
  bool nonfinite_ = false;
};

}  // namespace attendant::server
