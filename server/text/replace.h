// The normalizer that replaces texts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/normalizer.h"

namespace attendant::text {

// Loads a "Replace". Returns UNIMPLEMENTED for unknown regular expressions.
absl::StatusOr<Normalizer> LoadReplace(const Fields& fields);

// Loads a replacement text of at most 64 bytes.
absl::StatusOr<std::u32string> LoadContent(const Fields& fields, absl::string_view key);

}  // namespace attendant::text
