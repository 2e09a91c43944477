#include "server/inference/infer_value.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using Kind = InferValue::Kind;

constexpr Datatype kDatatypes[] = {
    {"BOOL", inference::TYPE_BOOL, v1::BOOL},       {"UINT8", inference::TYPE_UINT8, v1::UINT8},
    {"UINT16", inference::TYPE_UINT16, v1::UINT16}, {"UINT32", inference::TYPE_UINT32, v1::UINT32},
    {"UINT64", inference::TYPE_UINT64, v1::UINT64}, {"INT8", inference::TYPE_INT8, v1::INT8},
    {"INT16", inference::TYPE_INT16, v1::INT16},    {"INT32", inference::TYPE_INT32, v1::INT32},
    {"INT64", inference::TYPE_INT64, v1::INT64},    {"FP16", inference::TYPE_FP16, v1::FLOAT16},
    {"FP32", inference::TYPE_FP32, v1::FLOAT32},    {"BF16", inference::TYPE_BF16, v1::BFLOAT16},
};

template <typename Element>
bool WriteInteger(const InferValue& value, char* to) {
  using Limits = std::numeric_limits<Element>;
  const bool fits = (value.kind == Kind::kUnsigned && value.count <= uint64_t{Limits::max()}) ||
                    (value.kind == Kind::kSigned && Limits::is_signed &&
                     value.number >= static_cast<int64_t>(Limits::min()));
  if (!fits) return false;
  const auto element = value.kind == Kind::kSigned ? static_cast<Element>(value.number)
                                                   : static_cast<Element>(value.count);
  std::memcpy(to, &element, sizeof element);
  return true;
}

bool WriteFloat(const InferValue& value, char* to) {
  float element = 0;
  if (value.kind == Kind::kFloat) {
    element = static_cast<float>(value.real);
  } else if (value.kind == Kind::kUnsigned) {
    element = static_cast<float>(value.count);
  } else if (value.kind == Kind::kSigned) {
    element = static_cast<float>(value.number);
  } else {
    return false;
  }
  std::memcpy(to, &element, sizeof element);
  return std::isfinite(element) || !std::isfinite(value.real);  // not one beyond float's range
}

bool WriteFlag(const InferValue& value, char* to) {
  const std::optional<bool> flag = FlagOf(value);
  *to = flag.value_or(false) ? 1 : 0;
  return flag.has_value();
}

}  // namespace

const Datatype* FindDatatype(absl::string_view name) {
  for (const Datatype& datatype : kDatatypes) {
    if (datatype.name == name) return &datatype;
  }
  return nullptr;
}

const char* DatatypeName(v1::DataType type) {
  for (const Datatype& datatype : kDatatypes) {
    if (datatype.wire == type) return datatype.name;
  }
  return "";
}

std::string DatatypeNames() {
  return absl::StrJoin(kDatatypes, ", ", [](std::string* text, const Datatype& datatype) {
    text->append(datatype.name);
  });
}

InferValue InferValue::OfFlag(bool value) { return {.kind = Kind::kFlag, .flag = value}; }

InferValue InferValue::OfSigned(int64_t value) {
  if (value >= 0) return OfUnsigned(static_cast<uint64_t>(value));
  return {.kind = Kind::kSigned, .number = value};
}

InferValue InferValue::OfUnsigned(uint64_t value) {
  return {.kind = Kind::kUnsigned, .count = value};
}

InferValue InferValue::OfFloat(double value) {
  constexpr double kExactBelow = 9007199254740992;  // 2^53
  const bool negative_zero = value == 0 && std::signbit(value);
  if (std::abs(value) < kExactBelow && std::trunc(value) == value && !negative_zero) {
    return OfSigned(static_cast<int64_t>(value));
  }
  return {.kind = Kind::kFloat, .real = value};
}

std::string Describe(const InferValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kFlag:
      return value.flag ? "true" : "false";
    case Kind::kSigned:
      return absl::StrCat(value.number);
    case Kind::kUnsigned:
      return absl::StrCat(value.count);
    case Kind::kFloat:
      return absl::StrCat(value.real);
    case Kind::kNested:
      return "a list or an object";
    case Kind::kText:
      break;
  }
  return Quote(*value.text);
}

std::optional<bool> FlagOf(const InferValue& value) {
  if (value.kind == Kind::kFlag) return value.flag;
  if (value.kind == Kind::kUnsigned && value.count <= 1) return value.count == 1;
  return std::nullopt;
}

std::optional<int64_t> IntegerOf(const InferValue& value) {
  int64_t number;
  if (!WriteInteger<int64_t>(value, reinterpret_cast<char*>(&number))) return std::nullopt;
  return number;
}

ElementWriter WriterOf(v1::DataType type) {
  switch (type) {
    case v1::BOOL:
      return WriteFlag;
    case v1::INT8:
      return WriteInteger<int8_t>;
    case v1::INT16:
      return WriteInteger<int16_t>;
    case v1::INT32:
      return WriteInteger<int32_t>;
    case v1::INT64:
      return WriteInteger<int64_t>;
    case v1::UINT8:
      return WriteInteger<uint8_t>;
    case v1::UINT16:
      return WriteInteger<uint16_t>;
    case v1::UINT32:
      return WriteInteger<uint32_t>;
    case v1::UINT64:
      return WriteInteger<uint64_t>;
    case v1::FLOAT32:
      return WriteFloat;
    default:
      return nullptr;
  }
}

}  // namespace attendant::server
