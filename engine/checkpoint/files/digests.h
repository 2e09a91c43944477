// Digests of files: the SHA-256 of weight files (rule W15 in engine/checkpoint/README.md), and the
// SHA-1 by which Git names a file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/files/input_file.h"

namespace attendant {

// Both return 64 lower-case hexadecimal digits.
absl::StatusOr<std::string> Sha256(const InputFile& file);
absl::StatusOr<std::string> Sha256(absl::string_view text);

// Returns 40 lower-case hexadecimal digits, as `git hash-object` prints them.
absl::StatusOr<std::string> GitBlobSha1(const InputFile& file);

}  // namespace attendant
