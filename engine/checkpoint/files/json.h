// JSON from a file that nobody vouches for: bounded, and stricter than the parser alone.
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
  int max_depth = 32;  // of nested objects and arrays
  int64_t max_values = int64_t{1} << 20;
};

// Parses strict UTF-8 JSON; an object with the same key twice is refused, also when the two are
// only the same after unescaping. INVALID_ARGUMENT names `file` and the place.
absl::StatusOr<Json> ParseJson(absl::string_view text, const JsonLimits& limits,
                               const std::string& file);

// The same for a whole file. NOT_FOUND: there is none.
absl::StatusOr<Json> ReadJsonFile(const std::string& path, const JsonLimits& limits);

// The value of a plain non-negative integer below 2^63: no sign, fraction or exponent, never
// through a double. Nothing for anything else.
std::optional<int64_t> AsCount(const Json& value);

// A value for a message: "true", "'gelu'", "-3", "an object".
std::string Describe(const Json& value);

}  // namespace attendant
