// Tensor, the client library's array type, and its conversions. All functions are pure and
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace attendant::client {

// The element types, with their values in the protocol.
enum class DataType : int {
  kFloat32 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kBool = 4,
  kInt8 = 5,
  kUInt8 = 6,
  kInt16 = 7,
  kUInt16 = 8,
  kInt32 = 9,
  kUInt32 = 10,
  kInt64 = 11,
  kUInt64 = 12,
};

// Returns the size of one element in bytes; 0 for a value that is not a DataType.
int64_t ByteWidth(DataType dtype);

// Returns the name in lower case: "float32", "bool", …
const char* Name(DataType dtype);

// Returns whether the type is float32, float16 or bfloat16.
bool IsFloat(DataType dtype);

// A dense array that owns its elements: `data` holds them in row-major order, little-endian,
// without padding. An empty shape is a scalar.
struct Tensor {
  DataType dtype = DataType::kFloat32;
  std::vector<int64_t> shape;
  std::string data;
};

// Returns the number of elements of `shape`; nullopt if a dimension is negative or the product
// overflows int64.
std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape);

// Returns the size in bytes of `shape` with elements of `width` bytes; nullopt as in ElementCount,
// or if the size overflows int64.
std::optional<int64_t> ByteCount(absl::Span<const int64_t> shape, int64_t width);

// Returns the shape as text: "[2, 3, 4]".
std::string ShapeToString(absl::Span<const int64_t> shape);

// Returns INVALID_ARGUMENT unless `tensor.data` has the size that its shape and dtype require.
absl::Status Validate(const Tensor& tensor);

// Return a float32 or int64 tensor with a copy of `values`, which must have as many elements as
// `shape`; Validate checks this.
Tensor FloatTensor(std::vector<int64_t> shape, absl::Span<const float> values);
Tensor Int64Tensor(std::vector<int64_t> shape, absl::Span<const int64_t> values);

// Returns the elements of a float tensor, widened to float32. INVALID_ARGUMENT for another type, or
// a tensor that fails Validate.
absl::StatusOr<std::vector<float>> ToFloats(const Tensor& tensor);

// Returns the elements of a bool or integer tensor. INVALID_ARGUMENT for another type, a tensor
// that fails Validate, or an element that exceeds int64.
absl::StatusOr<std::vector<int64_t>> ToInt64s(const Tensor& tensor);

// Converts a float tensor to another float type, rounding to nearest even. INVALID_ARGUMENT if
// either type is not a float type, or if the tensor fails Validate.
absl::StatusOr<Tensor> ConvertFloat(const Tensor& tensor, DataType dtype);

}  // namespace attendant::client
