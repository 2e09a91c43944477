// Parses the body of a text API request.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_tree.h"

namespace attendant::server {

// Parses the JSON object in a UTF-8 body of at most `most_values` values (not counting token ids,
// the 32-bit integers in a list of nothing else), nested at most 32 deep. Uses at most about the
// body's size and 72 bytes per value or id. Errors name the member: kUntokenizable for invalid
// Unicode, kMalformed for invalid JSON, kInvalid for a value other than an object, kOversized
// beyond the limits.
absl::StatusOr<std::unique_ptr<const text::JsonTree>> ParseJsonObject(std::string_view body,
                                                                      size_t most_values);

// Describes a value for messages: "null", "\"a text\"", "a list of 3", "an object", "1.5".
std::string Describe(text::JsonValue value);
std::string DescribeText(absl::string_view text);  // of a string

}  // namespace attendant::server
