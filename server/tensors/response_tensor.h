// ResponseTensor, written once into the memory that gRPC sends.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/tensor.pb.h"
#include "engine/base/data_type.h"
#include "engine/base/matrix_view.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// Dense, row-major, of a float type or int32. Move-only.
class ResponseTensor {
 public:
  // Without memory: has no elements until Allocate.
  ResponseTensor(std::vector<int64_t> shape, DataType dtype)
      : shape_(std::move(shape)), dtype_(dtype) {}
  ResponseTensor() = default;

  // Call once, for a size within the limit. The elements are undefined: each must be written.
  // Returns RESOURCE_EXHAUSTED without memory.
  absl::Status Allocate();

  // Writes the elements [first, first + count): of a float type from float32, or of int32.
  void Write(int64_t first, const float* values, int64_t count);
  void Write(int64_t first, const int32_t* values, int64_t count);
  void WriteZeros(int64_t first, int64_t count);

  // Returns the bytes of elements as sent, and reads elements from such bytes.
  absl::string_view BytesAt(int64_t first, int64_t count) const;
  void WriteBytes(int64_t first, absl::string_view bytes);

  int64_t elements() const { return elements_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  DataType dtype() const { return dtype_; }
  int64_t dim(size_t i) const { return shape_[i]; }

  // Returns dtype and shape.
  v1::Tensor head() const;

  // Returns the data, which the slice then owns, and empties the tensor.
  grpc::Slice TakeData();

 private:
  std::vector<int64_t> shape_;
  DataType dtype_ = DataType::kFloat32;
  int64_t elements_ = 0;
  std::unique_ptr<uint8_t, void (*)(void*)> data_{nullptr, std::free};
};

// Writes the kept rows of a request or slice, [T, width], to their places in target: [B, S, width],
// [S, B, width] or [T, width]. Does not change other rows.
void WriteKeptRows(const TokenLayout& layout, MatrixView<const float> rows, ResponseTensor& target);

// Writes the rows of `tokens` [R], in that order, to target [R, width]. Does not change the rows of
// tokens that are -1.
void WriteSelectedRows(absl::Span<const int32_t> tokens, MatrixView<const float> rows,
                       ResponseTensor& target);

}  // namespace attendant::server
