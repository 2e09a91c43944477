// SHA-256 of weight files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/files/input_file.h"

namespace attendant {

// Both give 64 lower-case hexadecimal digits.
absl::StatusOr<std::string> Sha256(const InputFile& file);
absl::StatusOr<std::string> Sha256(absl::string_view text);

}  // namespace attendant
