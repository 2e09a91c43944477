// Element types of the Open Inference Protocol, and InferValue, an element, dimension or parameter
// in a request, from JSON or typed contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "attendant/v1/tensor.pb.h"
#include "inference/inference_service.pb.h"

namespace attendant::server {

// An element type, and its type in attendant.v1.
struct Datatype {
  const char* name;
  inference::DataType config;  // in a model's configuration
  v1::DataType wire;
};

// The datatype of texts.
inline constexpr char kTextDatatype[] = "BYTES";

// Returns null for unknown names and for FP64 and BYTES (texts only), which have no counterpart.
const Datatype* FindDatatype(absl::string_view name);

// `type` must be a possible type of a response tensor.
const char* DatatypeName(v1::DataType type);

// Returns "BOOL, UINT8, …", for messages.
std::string DatatypeNames();

struct InferValue {
  enum class Kind { kNull, kFlag, kSigned, kUnsigned, kFloat, kText, kNested };
  Kind kind = Kind::kNull;
  bool flag = false;
  int64_t number = 0;           // kSigned, always negative
  uint64_t count = 0;           // kUnsigned
  double real = 0;              // kFloat
  std::string* text = nullptr;  // kText; may be moved from

  static InferValue OfFlag(bool value);
  static InferValue OfSigned(int64_t value);
  static InferValue OfUnsigned(uint64_t value);
  // Returns a whole number as an integer, because some writers have no integers and write 9.0 for
  // 9. Numbers from 2^53 on, which may have been rounded, and -0.0 remain floats.
  static InferValue OfFloat(double value);
};

// Returns "true", "3.5" or "\"x\"", for messages.
std::string Describe(const InferValue& value);

// Returns the boolean represented by `value`: true, false, 1 or 0.
std::optional<bool> FlagOf(const InferValue& value);

// Returns the integer represented by `value` if it fits into int64.
std::optional<int64_t> IntegerOf(const InferValue& value);

// Writes `value` as an element of a datatype, little-endian. Returns false if it does not fit.
using ElementWriter = bool (*)(const InferValue& value, char* to);

// Returns null for types that neither JSON nor typed contents support (FP16 and BF16).
ElementWriter WriterOf(v1::DataType type);

}  // namespace attendant::server
