// JSON from untrusted files, within limits and read more strictly than by the parser alone.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

using Json = nlohmann::json;

struct JsonLimits {
  int64_t max_bytes = int64_t{1} << 20;
  int max_depth = 32;  // nested objects and arrays
  int64_t max_values = int64_t{1} << 20;
};

// Parses strict UTF-8 JSON. An object with the same key twice is refused, even if the two are
// spelled with different escapes. INVALID_ARGUMENT names `file` and the byte or the key.
absl::StatusOr<Json> ParseJson(absl::string_view text, const JsonLimits& limits,
                               const std::string& file);

// Parses a whole file. Returns NOT_FOUND if there is none.
absl::StatusOr<Json> ReadJsonFile(const std::string& path, const JsonLimits& limits = {});

// Returns the object that a file holds; an empty one if there is no such file, or if it holds
// anything else.
Json ReadObjectOrEmpty(const std::string& path);

// Returns the text under a key of an object; empty if there is none.
std::string TextAt(const Json& object, const std::string& key);
// Does so for a token, which is written as a text or as an object with its content.
std::string TokenTextAt(const Json& object, const std::string& key);

// Returns the value of a plain non-negative integer below 2^63, without sign, fraction or exponent,
// and never through a double. Returns nothing for any other value.
std::optional<int64_t> AsCount(const Json& value);

// Describes a value for a message: "true", "'gelu'", "-3", "an object".
std::string Describe(const Json& value);

}  // namespace attendant
