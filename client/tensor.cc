#include "client/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant::client {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are little-endian");

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

// Returns `bits` without its lowest `drop` bits, rounded to nearest even. A carry into the exponent
// gives the right result as it is.
uint32_t RoundShift(uint32_t bits, int drop) {
  const uint32_t half_minus_one = (1u << (drop - 1)) - 1;
  return (bits + half_minus_one + ((bits >> drop) & 1u)) >> drop;
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;   // NaN
  if (magnitude >= 0x47800000u) return sign | 0x7C00u;  // 65536 and above, infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, multiples of 2^-24
    const float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  return sign | static_cast<uint16_t>(RoundShift(magnitude - (112u << 23), 13));
}

float BFloat16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>(RoundShift(bits, 16));
}

template <typename T>
T Load(const std::string& data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Append(T value, std::string& data) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  data.append(bytes, sizeof(T));
}

int64_t LoadInteger(const Tensor& tensor, size_t i) {
  switch (tensor.dtype) {
    case DataType::kBool:
      return Load<uint8_t>(tensor.data, i) != 0;
    case DataType::kInt8:
      return Load<int8_t>(tensor.data, i);
    case DataType::kUInt8:
      return Load<uint8_t>(tensor.data, i);
    case DataType::kInt16:
      return Load<int16_t>(tensor.data, i);
    case DataType::kUInt16:
      return Load<uint16_t>(tensor.data, i);
    case DataType::kInt32:
      return Load<int32_t>(tensor.data, i);
    case DataType::kUInt32:
      return Load<uint32_t>(tensor.data, i);
    default:
      return Load<int64_t>(tensor.data, i);
  }
}

}  // namespace

int64_t ByteWidth(DataType dtype) {
  switch (dtype) {
    case DataType::kBool:
    case DataType::kInt8:
    case DataType::kUInt8:
      return 1;
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kInt16:
    case DataType::kUInt16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
    case DataType::kUInt32:
      return 4;
    case DataType::kInt64:
    case DataType::kUInt64:
      return 8;
  }
  return 0;
}

const char* Name(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kBool:
      return "bool";
    case DataType::kInt8:
      return "int8";
    case DataType::kUInt8:
      return "uint8";
    case DataType::kInt16:
      return "int16";
    case DataType::kUInt16:
      return "uint16";
    case DataType::kInt32:
      return "int32";
    case DataType::kUInt32:
      return "uint32";
    case DataType::kInt64:
      return "int64";
    case DataType::kUInt64:
      return "uint64";
  }
  return "unknown";
}

bool IsFloat(DataType dtype) {
  return dtype == DataType::kFloat32 || dtype == DataType::kFloat16 || dtype == DataType::kBFloat16;
}

std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  bool has_zero = false;  // a zero must not hide an overflow of the other dimensions
  for (int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    has_zero |= dimension == 0;
    if (__builtin_mul_overflow(count, dimension == 0 ? 1 : dimension, &count)) return std::nullopt;
  }
  return has_zero ? 0 : count;
}

std::optional<int64_t> ByteCount(absl::Span<const int64_t> shape, int64_t width) {
  const std::optional<int64_t> count = ElementCount(shape);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, width, &bytes)) return std::nullopt;
  return bytes;
}

std::string ShapeToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status Validate(const Tensor& tensor) {
  const int64_t width = ByteWidth(tensor.dtype);
  if (width == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has the unknown element type ", static_cast<int>(tensor.dtype)));
  }
  const std::optional<int64_t> bytes = ByteCount(tensor.shape, width);
  if (!bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has the invalid shape ", ShapeToString(tensor.shape)));
  }
  if (static_cast<int64_t>(tensor.data.size()) != *bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a ", Name(tensor.dtype), " tensor of shape ",
                                                   ShapeToString(tensor.shape), " takes ", *bytes,
                                                   " bytes, not ", tensor.data.size()));
  }
  return absl::OkStatus();
}

Tensor FloatTensor(std::vector<int64_t> shape, absl::Span<const float> values) {
  return {DataType::kFloat32, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
}

Tensor Int64Tensor(std::vector<int64_t> shape, absl::Span<const int64_t> values) {
  return {
      DataType::kInt64, std::move(shape),
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t))};
}

absl::StatusOr<std::vector<float>> ToFloats(const Tensor& tensor) {
  if (absl::Status status = Validate(tensor); !status.ok()) return status;
  if (!IsFloat(tensor.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a float tensor; got ", Name(tensor.dtype)));
  }
  std::vector<float> values(tensor.data.size() / ByteWidth(tensor.dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (tensor.dtype) {
      case DataType::kFloat16:
        values[i] = HalfToFloat(Load<uint16_t>(tensor.data, i));
        break;
      case DataType::kBFloat16:
        values[i] = BFloat16ToFloat(Load<uint16_t>(tensor.data, i));
        break;
      default:
        values[i] = Load<float>(tensor.data, i);
    }
  }
  return values;
}

absl::StatusOr<std::vector<int64_t>> ToInt64s(const Tensor& tensor) {
  if (absl::Status status = Validate(tensor); !status.ok()) return status;
  if (IsFloat(tensor.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an integer tensor; got ", Name(tensor.dtype)));
  }
  std::vector<int64_t> values(tensor.data.size() / ByteWidth(tensor.dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = LoadInteger(tensor, i);
    if (tensor.dtype == DataType::kUInt64 && values[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "element ", i, " is ", static_cast<uint64_t>(values[i]), ", which exceeds int64"));
    }
  }
  return values;
}

absl::StatusOr<Tensor> ConvertFloat(const Tensor& tensor, DataType dtype) {
  if (!IsFloat(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(Name(dtype), " is not a float type"));
  }
  absl::StatusOr<std::vector<float>> values = ToFloats(tensor);
  if (!values.ok()) return values.status();
  if (dtype == tensor.dtype) return tensor;
  Tensor converted{dtype, tensor.shape, {}};
  converted.data.reserve(values->size() * ByteWidth(dtype));
  for (float value : *values) {
    switch (dtype) {
      case DataType::kFloat16:
        Append(FloatToHalf(value), converted.data);
        break;
      case DataType::kBFloat16:
        Append(FloatToBFloat16(value), converted.data);
        break;
      default:
        Append(value, converted.data);
    }
  }
  return converted;
}

}  // namespace attendant::client
