// Tensors of a response, written once into the memory that goes to the wire.
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

// Dense, row-major, of a float type or int32. Starts undefined: every element has to be written.
// Move-only.
class ResponseTensor {
 public:
  // RESOURCE_EXHAUSTED if there is no memory; the size has been checked against the limit.
  static absl::StatusOr<ResponseTensor> Make(std::vector<int64_t> shape, DataType dtype);

  // Elements [first, first + count) of a float type, from float32; of int32.
  void Write(int64_t first, const float* values, int64_t count);
  void Write(int64_t first, const int32_t* values, int64_t count);
  void WriteZeros(int64_t first, int64_t count);

  // The bytes of elements, as they go to the wire; and elements from such bytes.
  absl::string_view BytesAt(int64_t first, int64_t count) const;
  void WriteBytes(int64_t first, absl::string_view bytes);

  int64_t elements() const { return elements_; }
  int64_t dim(size_t i) const { return shape_[i]; }

  // dtype and shape.
  v1::Tensor head() const;

  // The data, which the slice then owns; the tensor is empty afterwards.
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

// Writes the kept rows of a request or of a slice of it, [T, width], to where they belong in
// target: [B, S, width], [S, B, width] or [T, width]. Leaves the other rows as they are.
void WriteKeptRows(const TokenLayout& layout, MatrixView<const float> rows, ResponseTensor& target);

// Writes the rows of `tokens` [R], in that order, to target [R, width]. Leaves the rows of a token
// of -1 as they are.
void WriteSelectedRows(absl::Span<const int32_t> tokens, MatrixView<const float> rows,
                       ResponseTensor& target);

}  // namespace attendant::server
