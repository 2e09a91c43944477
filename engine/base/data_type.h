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

struct DataTypeRow {
  const char* name;
  DataType value;
  int64_t bytes;  // of one element
};

inline constexpr DataTypeRow kDataTypes[] = {
    {"float32", DataType::kFloat32, 4},   {"float16", DataType::kFloat16, 2},
    {"bfloat16", DataType::kBFloat16, 2}, {"float64", DataType::kFloat64, 8},
    {"bool", DataType::kBool, 1},         {"int8", DataType::kInt8, 1},
    {"uint8", DataType::kUInt8, 1},       {"int16", DataType::kInt16, 2},
    {"uint16", DataType::kUInt16, 2},     {"int32", DataType::kInt32, 4},
    {"uint32", DataType::kUInt32, 4},     {"int64", DataType::kInt64, 8},
    {"uint64", DataType::kUInt64, 8}};

// Returns the bytes of one element.
constexpr int64_t ByteWidth(DataType dtype) {
  for (const DataTypeRow& row : kDataTypes) {
    if (row.value == dtype) return row.bytes;
  }
  return 0;
}

// Returns the name in error messages: "float32", "bool" and so on.
constexpr const char* Name(DataType dtype) { return NameIn(kDataTypes, dtype); }

constexpr bool IsFloat(DataType dtype) { return dtype <= DataType::kFloat64; }

}  // namespace attendant
