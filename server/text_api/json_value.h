// JsonValue, the JSON of a request of a text API: bounded, and with its texts checked.
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
  using Ids = std::vector<int32_t>;  // a list, not empty, of nothing but integers of 32 bits
  using List = std::vector<JsonValue>;
  using Object =
      std::vector<std::pair<std::string, JsonValue>>;  // as sent; the last of a name counts
  // A number that is not an integer of 64 bits, as it was written.
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

// Returns the object in a body in UTF-8, of at most `most_values` values, those in Ids apart,
// nested at most 32 deep. It takes no more memory than some 4 times the body and 200 bytes for each
// value. Errors name the member whose text is not Unicode: kUntokenizable; kMalformed if it is not
// JSON, kInvalid if it is not an object, kOversized beyond the bounds.
absl::StatusOr<JsonValue::Object> ParseJsonObject(std::string_view body, size_t most_values);

// A value in a few words, for messages: "null", "\"a text\"", "a list of 3", "an object", "1.5".
std::string Describe(const JsonValue& value);

// The text as a JSON string, with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string QuoteJson(std::string_view text);

}  // namespace attendant::server
