// Element types of tensors in files and on the wire.
#pragma once

#include <cstdint>

#include "engine/base/names.h"

namespace attendant {

enum class DataType : uint8_t {
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat64,
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
};

// Returns the bytes of one element.
constexpr int64_t ByteWidth(DataType dtype) {
  switch (dtype) {
    case DataType::kBool:
    case DataType::kInt8:
    case DataType::kUInt8:
      return 1;
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return 2;
    case DataType::kInt16:
    case DataType::kUInt16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
    case DataType::kUInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
    case DataType::kUInt64:
      return 8;
  }
  return 0;
}

inline constexpr Named<DataType> kDataTypeNames[] = {
    {"float32", DataType::kFloat32},   {"float16", DataType::kFloat16},
    {"bfloat16", DataType::kBFloat16}, {"float64", DataType::kFloat64},
    {"bool", DataType::kBool},         {"int8", DataType::kInt8},
    {"uint8", DataType::kUInt8},       {"int16", DataType::kInt16},
    {"uint16", DataType::kUInt16},     {"int32", DataType::kInt32},
    {"uint32", DataType::kUInt32},     {"int64", DataType::kInt64},
    {"uint64", DataType::kUInt64}};

// Returns the name in error messages: "float32", "bool" and so on.
constexpr const char* Name(DataType dtype) { return NameIn(kDataTypeNames, dtype); }

constexpr bool IsFloat(DataType dtype) { return dtype <= DataType::kFloat64; }

}  // namespace attendant
