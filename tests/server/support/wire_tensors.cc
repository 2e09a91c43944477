#include "tests/server/support/wire_tensors.h"

#include <cstring>
#include <random>
#include <stdexcept>
#include <utility>

#include "engine/kernels/convert.h"

namespace attendant::server {
namespace {

DataType FloatType(v1::DataType dtype) {
  switch (dtype) {
    case v1::FLOAT32:
      return DataType::kFloat32;
    case v1::FLOAT16:
      return DataType::kFloat16;
    case v1::BFLOAT16:
      return DataType::kBFloat16;
    default:
      throw std::invalid_argument("not a float type");
  }
}

size_t IntegerWidth(v1::DataType dtype) {
  switch (dtype) {
    case v1::BOOL:
    case v1::INT8:
    case v1::UINT8:
      return 1;
    case v1::INT16:
    case v1::UINT16:
      return 2;
    case v1::INT32:
    case v1::UINT32:
      return 4;
    case v1::INT64:
    case v1::UINT64:
      return 8;
    default:
      throw std::invalid_argument("not an integer type");
  }
}

v1::Tensor Head(const std::vector<int64_t>& shape, v1::DataType dtype) {
  v1::Tensor tensor;
  tensor.set_dtype(dtype);
  for (int64_t dim : shape) tensor.add_shape(dim);
  return tensor;
}

}  // namespace

v1::Tensor FloatTensor(std::vector<int64_t> shape, const std::vector<float>& values,
                       v1::DataType dtype) {
  v1::Tensor tensor = Head(shape, dtype);
  const DataType type = FloatType(dtype);
  tensor.mutable_data()->resize(values.size() * ByteWidth(type));
  FromFloat(values.data(), static_cast<int64_t>(values.size()), type,
            tensor.mutable_data()->data());
  return tensor;
}

v1::Tensor IntegerTensor(std::vector<int64_t> shape, const std::vector<int64_t>& values,
                         v1::DataType dtype) {
  v1::Tensor tensor = Head(shape, dtype);
  // The format is little-endian, so the low bytes come first.
  for (int64_t value : values) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    tensor.mutable_data()->append(bytes, IntegerWidth(dtype));
  }
  return tensor;
}

v1::AttendRequest AttendOf(const std::string& model, v1::Tensor hidden_states) {
  v1::AttendRequest request;
  request.set_model(model);
  *request.mutable_hidden_states() = std::move(hidden_states);
  return request;
}

std::vector<float> ToFloats(const v1::Tensor& tensor) {
  const DataType type = FloatType(tensor.dtype());
  std::vector<float> values(tensor.data().size() / ByteWidth(type));
  ToFloat(type, tensor.data().data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

std::vector<int64_t> ShapeOf(const v1::Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

std::vector<float> Rows(const std::vector<float>& values, int64_t width, int64_t first,
                        int64_t count) {
  return {values.begin() + first * width, values.begin() + (first + count) * width};
}

std::vector<float> RoundedTo(v1::DataType dtype, std::vector<float> values) {
  const int64_t count = static_cast<int64_t>(values.size());
  return ToFloats(FloatTensor({count}, values, dtype));
}

std::vector<float> SomeValues(int64_t count, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

}  // namespace attendant::server
