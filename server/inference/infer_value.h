// A value in a request of the Open Inference Protocol: an element of a tensor, a dimension or a
// parameter, as JSON or a list of ModelInfer has it; and which values a datatype or field takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attendant/v1/tensor.pb.h"

namespace attendant::server {

struct InferValue {
  enum class Kind { kNull, kFlag, kSigned, kUnsigned, kFloat, kText, kNested };
  Kind kind = Kind::kNull;
  bool flag = false;
  int64_t number = 0;           // kSigned, which is negative
  uint64_t count = 0;           // kUnsigned
  double real = 0;              // kFloat
  std::string* text = nullptr;  // kText; may be moved from

  static InferValue OfFlag(bool value);
  static InferValue OfSigned(int64_t value);
  static InferValue OfUnsigned(uint64_t value);
  // Some writers have no integers, and write 9.0 for 9: returns a whole number as an integer. From
  // 2^53 on it may have been another one, and -0.0 is only a float.
  static InferValue OfFloat(double value);
};

// "true", "3.5", "\"x\"", for messages.
std::string Describe(const InferValue& value);

// Returns the boolean that `value` is: true, false, 1 or 0.
std::optional<bool> FlagOf(const InferValue& value);

// Returns the integer that `value` is, if int64 has it.
std::optional<int64_t> IntegerOf(const InferValue& value);

// Writes `value` as one element of a datatype, little-endian. False: it is not an element of it.
using ElementWriter = bool (*)(const InferValue& value, char* to);

// Null: neither JSON nor lists have such numbers (FP16 and BF16).
ElementWriter WriterOf(v1::DataType type);

}  // namespace attendant::server
