// The sparse vectors of a response, collected from its slices.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/matrix_view.h"
#include "server/request/compute_request.h"
#include "server/tensors/response_tensor.h"

namespace attendant::server {

// Returns the non-zero elements of each row, in order; NaN counts as non-zero.
std::vector<std::vector<SparseElement>> NonZeros(MatrixView<const float> rows);

// Move-only. Not thread-safe.
class SparseResponse {
 public:
  explicit SparseResponse(int64_t sequences) : vectors_(sequences), left_(sequences) {}

  // Takes the vectors of the sequences from `first`, each once. The last call builds the tensors,
  // with weights of this type. Returns RESOURCE_EXHAUSTED without memory for them.
  absl::Status Take(int64_t first, std::vector<std::vector<SparseElement>> vectors, DataType dtype);

  // Instead of Take: makes tensors for the caller to fill.
  absl::Status Allocate(std::vector<int64_t> counts, DataType dtype);

  // After all vectors are taken: the number of elements per sequence, and the tensors [their sum].
  const std::vector<int64_t>& counts() const { return counts_; }
  ResponseTensor& indices() { return indices_; }
  ResponseTensor& weights() { return weights_; }

 private:
  absl::Status MakeTensors(DataType dtype);

  std::vector<std::vector<SparseElement>> vectors_;  // [B], empty once the tensors are built
  int64_t left_;                                     // sequences without vectors so far
  std::vector<int64_t> counts_;
  ResponseTensor indices_;
  ResponseTensor weights_;
};

}  // namespace attendant::server
