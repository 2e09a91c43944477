#include "server/execution/sparse_response.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "engine/base/status_macros.h"

namespace attendant::server {

std::vector<std::vector<SparseElement>> NonZeros(MatrixView<const float> rows) {
  std::vector<std::vector<SparseElement>> vectors(rows.rows);
  for (int64_t r = 0; r < rows.rows; ++r) {
    const absl::Span<const float> row(rows.row(r), static_cast<size_t>(rows.cols));
    // Counted first, because a vector that grows takes more than was set aside for the request.
    vectors[r].reserve(std::count_if(row.begin(), row.end(), [](float w) { return w != 0; }));
    for (size_t j = 0; j < row.size(); ++j) {
      if (row[j] != 0) vectors[r].push_back({static_cast<int32_t>(j), row[j]});
    }
  }
  return vectors;
}

absl::Status SparseResponse::Take(int64_t first, std::vector<std::vector<SparseElement>> vectors,
                                  DataType dtype) {
  std::move(vectors.begin(), vectors.end(), vectors_.begin() + first);
  left_ -= static_cast<int64_t>(vectors.size());
  return left_ == 0 ? MakeTensors(dtype) : absl::OkStatus();
}

absl::Status SparseResponse::Allocate(std::vector<int64_t> counts, DataType dtype) {
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  indices_ = ResponseTensor({sum}, DataType::kInt32);
  weights_ = ResponseTensor({sum}, dtype);
  RETURN_IF_ERROR(indices_.Allocate());
  RETURN_IF_ERROR(weights_.Allocate());
  counts_ = std::move(counts);
  return absl::OkStatus();
}

absl::Status SparseResponse::MakeTensors(DataType dtype) {
  std::vector<int64_t> counts;
  for (const std::vector<SparseElement>& vector : vectors_) counts.push_back(std::ssize(vector));
  RETURN_IF_ERROR(Allocate(std::move(counts), dtype));
  int64_t next = 0;
  for (std::vector<SparseElement>& vector : vectors_) {
    for (const SparseElement& element : vector) {
      indices_.Write(next, &element.word, 1);
      weights_.Write(next, &element.weight, 1);
      ++next;
    }
    vector = {};
  }
  vectors_.clear();
  return absl::OkStatus();
}

}  // namespace attendant::server
