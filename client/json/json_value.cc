#include "client/json/json_value.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"

namespace attendant::client {
namespace {

using Json = nlohmann::ordered_json;

template <typename Members>
Json ObjectOf(const Members& members) {
  Json object = Json::object();
  for (const auto& [name, value] : members) object[name] = *value;
  return object;
}

Json ListOf(const std::vector<JsonValue>& items) {
  Json list = Json::array();
  for (const JsonValue& item : items) list.push_back(*item);
  return list;
}

// JSON has to be UTF-8, but text from a server or a file need not be.
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

JsonValue::JsonValue() : JsonValue(Json()) {}
JsonValue::JsonValue(bool value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(int64_t value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(double value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(const char* value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(const std::string& value) : JsonValue(Json(value)) {}
JsonValue::JsonValue(const std::vector<JsonValue>& items) : JsonValue(ListOf(items)) {}
JsonValue::JsonValue(std::initializer_list<std::pair<std::string, JsonValue>> members)
    : JsonValue(ObjectOf(members)) {}
JsonValue::JsonValue(Json value) : value_(std::make_shared<const Json>(std::move(value))) {}

JsonValue JsonValue::Object(const std::vector<std::pair<std::string, JsonValue>>& members) {
  return ObjectOf(members);
}

JsonValue JsonValue::Member(const std::string& name) const { return value_->value(name, Json()); }

std::string JsonValue::ToText() const { return Dump(*value_, 2); }

std::string JsonValue::ToLine() const { return Dump(*value_, -1); }

std::string JsonValue::ToScript() const {
  return absl::StrReplaceAll(ToLine(), {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

}  // namespace attendant::client
