// ResponseTensor, written once into the memory that gRPC sends.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/tensor.pb.h"
#include "engine/base/data_type.h"
#include "engine/base/matrix_view.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// Dense, row-major, of a float type or int32. Initially undefined: every element must be written.
// Move-only.
class ResponseTensor {
 public:
  // Returns RESOURCE_EXHAUSTED without memory. The caller has checked the size against the limit.
  static absl::StatusOr<ResponseTensor> Make(std::vector<int64_t> shape, DataType dtype);

  // Writes the elements [first, first + count): of a float type from float32, or of int32.
  void Write(int64_t first, const float* values, int64_t count);
  void Write(int64_t first, const int32_t* values, int64_t count);
  void WriteZeros(int64_t first, int64_t count);

  // Returns the bytes of elements as sent, and reads elements from such bytes.
  absl::string_view BytesAt(int64_t first, int64_t count) const;
  void WriteBytes(int64_t first, absl::string_view bytes);

  int64_t elements() const { return elements_; }
  int64_t dim(size_t i) const { return shape_[i]; }

  // Returns dtype and shape.
  v1::Tensor head() const;

  // Returns the data, which the slice then owns, and empties the tensor.
  grpc::Slice TakeData();

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };

  std::vector<int64_t> shape_;
  DataType dtype_ = DataType::kFloat32;
  int64_t elements_ = 0;
  std::unique_ptr<uint8_t, Free> data_;
};

// Writes the kept rows of a request or slice, [T, width], to their places in target: [B, S, width],
// [S, B, width] or [T, width]. Does not change other rows.
void WriteKeptRows(const TokenLayout& layout, MatrixView<const float> rows, ResponseTensor& target);

// Writes the rows of `tokens` [R], in that order, to target [R, width]. Does not change the rows of
// tokens that are -1.
void WriteSelectedRows(absl::Span<const int32_t> tokens, MatrixView<const float> rows,
                       ResponseTensor& target);

}  // namespace attendant::server
