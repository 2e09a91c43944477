// The normalizer that replaces texts by others.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/normalizer.h"

namespace attendant::text {

// Reads a "Replace". Regular expressions are known ones; UNIMPLEMENTED for any other.
absl::StatusOr<Normalizer> LoadReplace(const Fields& fields);

// Reads a text that is put in the place of others: of 64 bytes at most.
absl::StatusOr<std::u32string> LoadContent(const Fields& fields, absl::string_view key);

}  // namespace attendant::text
