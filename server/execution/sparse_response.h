// The sparse vectors of a response, until every slice of the request has made its own.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/matrix_view.h"
#include "server/request/compute_request.h"
#include "server/tensors/response_tensor.h"

namespace attendant::server {

// Returns the elements of each row that are not zero, in their order; NaN is not zero.
std::vector<std::vector<SparseElement>> NonZeros(MatrixView<const float> rows);

// Move-only. One thread.
class SparseResponse {
 public:
  explicit SparseResponse(int64_t sequences) : vectors_(sequences), left_(sequences) {}
  // With the vectors of all sequences.
  SparseResponse(std::vector<int64_t> counts, ResponseTensor indices, ResponseTensor weights)
      : left_(0),
        counts_(std::move(counts)),
        indices_(std::move(indices)),
        weights_(std::move(weights)) {}

  // Takes the vectors of the sequences from `first` on, each once. The last ones make the tensors,
  // with weights of this type. RESOURCE_EXHAUSTED if there is no memory for them.
  absl::Status Take(int64_t first, std::vector<std::vector<SparseElement>> vectors, DataType dtype);

  // Once all vectors have been taken: the elements of each sequence, and the tensors [their sum].
  const std::vector<int64_t>& counts() const { return counts_; }
  ResponseTensor& indices() { return indices_; }
  ResponseTensor& weights() { return weights_; }

 private:
  absl::Status MakeTensors(DataType dtype);

  std::vector<std::vector<SparseElement>> vectors_;  // [B], empty once the tensors are made
  int64_t left_;                                     // sequences whose vectors are to come
  std::vector<int64_t> counts_;
  ResponseTensor indices_;
  ResponseTensor weights_;
};

}  // namespace attendant::server
