// JsonValue, a value of JSON to print or to pass on.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace attendant::client {

// Wraps nlohmann::ordered_json, because its header takes longer to compile than most files here,
// and converts from it and to it where that is included. Immutable; copies share the value.
class JsonValue {
 public:
  JsonValue();  // null
  JsonValue(bool value);
  JsonValue(int64_t value);
  JsonValue(double value);
  JsonValue(const char* value);
  JsonValue(const std::string& value);
  template <std::integral T>
  JsonValue(T value) : JsonValue(static_cast<int64_t>(value)) {}
  // A list.
  JsonValue(const std::vector<JsonValue>& items);
  template <typename T>
  JsonValue(const std::vector<T>& items)
      : JsonValue(std::vector<JsonValue>(items.begin(), items.end())) {}
  // An object with its members in this order.
  JsonValue(std::initializer_list<std::pair<std::string, JsonValue>> members);
  static JsonValue Object(const std::vector<std::pair<std::string, JsonValue>>& members);

  JsonValue(nlohmann::ordered_json value);
  operator const nlohmann::ordered_json&() const { return *value_; }
  const nlohmann::ordered_json& operator*() const { return *value_; }

  // Returns a member of an object; null if it has none of this name.
  JsonValue Member(const std::string& name) const;

  // Return it as text, in UTF-8 whatever is in it: indented, on one line, or on one line that may
  // stand in a <script>, where nothing in it opens or closes a tag.
  std::string ToText() const;
  std::string ToLine() const;
  std::string ToScript() const;

 private:
  std::shared_ptr<const nlohmann::ordered_json> value_;
};

}  // namespace attendant::client
