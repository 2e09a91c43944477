// JsonValue, the bounded and checked JSON of a text API request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::server {

struct JsonValue {
  using Ids = std::vector<int32_t>;  // a non-empty list of only 32-bit integers
  using List = std::vector<JsonValue>;
  using Object =
      std::vector<std::pair<std::string, JsonValue>>;  // as sent; the last of a name counts
  // A number that is not a 64-bit integer, as written.
  struct Number {
    std::string text;
  };

  std::variant<std::nullptr_t, bool, int64_t, Number, std::string, Ids, List, Object> value =
      nullptr;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
  template <typename T>
  T* As() {
    return std::get_if<T>(&value);
  }
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&value);
  }
};

// Parses the JSON object in a UTF-8 body of at most `most_values` values (not counting Ids), nested
// at most 32 deep. Uses at most about 4 times the body's size and 200 bytes per value. Errors name
// the member: kUntokenizable for invalid Unicode, kMalformed for invalid JSON, kInvalid for a value
// other than an object, kOversized beyond the limits.
absl::StatusOr<JsonValue::Object> ParseJsonObject(std::string_view body, size_t most_values);

// Describes a value for messages: "null", "\"a text\"", "a list of 3", "an object", "1.5".
std::string Describe(const JsonValue& value);

}  // namespace attendant::server
