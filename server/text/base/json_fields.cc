#include "server/text/base/json_fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attendant::text {

absl::Status Unexpected(absl::string_view field, absl::string_view what, absl::string_view got) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected ", what, "; got ", got));
}

absl::Status Unexpected(absl::string_view field, absl::string_view what, JsonValue got) {
  return Unexpected(field, what, got.Describe());
}

absl::Status Unsupported(absl::string_view field, absl::string_view value, absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(field, ": ", value, " not supported; use ", what));
}

absl::StatusOr<Fields> Fields::Open(JsonValue json, const std::string& path) {
  if (!json.is_object()) return Unexpected(path, "an object", json);
  return Fields(json, path);
}

absl::StatusOr<Fields> Fields::Parse(absl::string_view json, absl::string_view file) {
  ASSIGN_OR_RETURN(std::shared_ptr<const JsonTree> tree, JsonTree::Parse(json, file));
  ASSIGN_OR_RETURN(Fields fields, Open(tree->root(), std::string(file)));
  fields.file_ = std::move(tree);
  return fields;
}

std::string Fields::PathOf(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

std::optional<JsonValue> Fields::Lookup(absl::string_view key) const {
  std::optional<JsonValue> value = winner_ ? winner_->Find(key) : std::nullopt;
  return value.has_value() ? value : json_.Find(key);
}

absl::StatusOr<JsonValue> Fields::Get(absl::string_view key) const {
  const std::optional<JsonValue> value = Lookup(key);
  if (!value.has_value()) return Unexpected(PathOf(key), "a value", "no such key");
  return *value;
}

absl::StatusOr<Fields> Fields::Object(absl::string_view key) const {
  ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  return Open(value, PathOf(key));
}

std::optional<JsonValue> Fields::Find(absl::string_view key) const {
  const std::optional<JsonValue> value = Lookup(key);
  return value.has_value() && value->is_null() ? std::nullopt : value;
}

std::optional<std::string> Fields::Text(absl::string_view key) const {
  std::optional<JsonValue> value = Find(key);
  if (value.has_value() && value->is_object()) value = value->Find("content");
  if (!value.has_value() || !value->is_string()) return std::nullopt;
  return std::string(value->text());
}

absl::StatusOr<bool> Fields::Bool(absl::string_view key) const {
  ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  const std::optional<bool> read = value.AsBool();
  if (!read.has_value()) return Unexpected(PathOf(key), "true or false", value);
  return *read;
}

absl::StatusOr<bool> Fields::Bool(absl::string_view key, bool otherwise) const {
  if (!Find(key).has_value()) return otherwise;
  return Bool(key);
}

absl::StatusOr<std::string> Fields::String(absl::string_view key) const {
  ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  if (!value.is_string()) return Unexpected(PathOf(key), "a string", value);
  return std::string(value.text());
}

absl::StatusOr<std::string> Fields::String(absl::string_view key,
                                           absl::string_view otherwise) const {
  if (!Find(key).has_value()) return std::string(otherwise);
  return String(key);
}

absl::StatusOr<uint32_t> Fields::Id(absl::string_view key) const {
  ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  const std::optional<uint32_t> read = value.AsId();
  if (!read.has_value()) return Unexpected(PathOf(key), "an integer in 0..4294967295", value);
  return *read;
}

absl::StatusOr<std::vector<JsonValue>> Fields::Array(absl::string_view key) const {
  ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  if (!value.is_array()) return Unexpected(PathOf(key), "an array", value);
  return value.Elements();
}

absl::Status Fields::RequireKnown(absl::string_view known) const {
  const std::vector<absl::string_view> keys = absl::StrSplit(known, ',');
  for (const absl::string_view key : json_.Keys()) {
    if (key != "type" && std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return Unsupported(PathOf(key), "this key is", absl::StrCat("type,", known));
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant::text
