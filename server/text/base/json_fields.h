// Readers of tokenizer.json's fields, with errors that name the field.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// INVALID_ARGUMENT "FIELD: expected WHAT; got VALUE".
absl::Status Unexpected(absl::string_view field, absl::string_view what, absl::string_view got);
absl::Status Unexpected(absl::string_view field, absl::string_view what, JsonValue got);

// UNIMPLEMENTED "FIELD: VALUE not supported; use WHAT".
absl::Status Unsupported(absl::string_view field, absl::string_view value, absl::string_view what);

// An object of tokenizer.json or of a settings file, and its path.
class Fields {
 public:
  // `json` must be an object; see Open.
  Fields(JsonValue json, std::string path) : json_(json), path_(std::move(path)) {}
  static absl::StatusOr<Fields> Open(JsonValue json, const std::string& path);
  // Parses a file, which is kept.
  static absl::StatusOr<Fields> Parse(absl::string_view json, absl::string_view file);

  // Makes the values of an object, including null, override existing ones.
  void Override(JsonValue winner) { winner_ = winner; }

  std::string PathOf(absl::string_view key) const;
  JsonValue json() const { return json_; }

  // Returns the value of a required key.
  absl::StatusOr<JsonValue> Get(absl::string_view key) const;
  // Returns the value of a key unless it is absent or null.
  std::optional<JsonValue> Find(absl::string_view key) const;

  // Returns a string, or the content of a token that is an object; nullopt for other values.
  std::optional<std::string> Text(absl::string_view key) const;

  absl::StatusOr<bool> Bool(absl::string_view key) const;
  absl::StatusOr<bool> Bool(absl::string_view key, bool otherwise) const;
  absl::StatusOr<std::string> String(absl::string_view key) const;
  absl::StatusOr<std::string> String(absl::string_view key, absl::string_view otherwise) const;
  absl::StatusOr<uint32_t> Id(absl::string_view key) const;
  absl::StatusOr<std::vector<JsonValue>> Array(absl::string_view key) const;
  absl::StatusOr<Fields> Object(absl::string_view key) const;

  // Returns UNIMPLEMENTED for a key other than "type" and the comma-separated `known`, which may
  // have a meaning in a newer version of the format.
  absl::Status RequireKnown(absl::string_view known) const;

 private:
  std::optional<JsonValue> Lookup(absl::string_view key) const;

  JsonValue json_;
  std::string path_;
  std::optional<JsonValue> winner_;
  std::shared_ptr<const JsonTree> file_;
};

// A component of tokenizer.json: its "type", its other keys, separated by commas, and the function
// that loads it.
template <typename Made>
struct ComponentType {
  absl::string_view type, keys;
  absl::StatusOr<Made> (*load)(const Fields& fields);
};

// Loads a component of one of the `types`, which UNIMPLEMENTED errors list.
template <typename Made, size_t kCount>
absl::StatusOr<Made> LoadComponent(const ComponentType<Made> (&types)[kCount], JsonValue json,
                                   const std::string& field) {
  ASSIGN_OR_RETURN(const Fields fields, Fields::Open(json, field));
  ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  std::string known;
  for (const ComponentType<Made>& each : types) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", each.type);
    if (each.type != type) continue;
    RETURN_IF_ERROR(fields.RequireKnown(each.keys));
    return each.load(fields);
  }
  return Unsupported(fields.PathOf("type"), json.Find("type")->Describe(), known);
}

// Loads the array at `key`, each element with `load`.
template <typename Made>
absl::StatusOr<std::vector<Made>> LoadEach(
    const Fields& fields, absl::string_view key,
    absl::StatusOr<Made> (*load)(const std::optional<JsonValue>& json, const std::string& field)) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> list, fields.Array(key));
  std::vector<Made> made;
  for (size_t i = 0; i < list.size(); ++i) {
    ASSIGN_OR_RETURN(Made one, load(list[i], absl::StrCat(fields.PathOf(key), "[", i, "]")));
    made.push_back(std::move(one));
  }
  return made;
}

}  // namespace attendant::text
