// A file of a model, opened once and read with pread: never mapped, since a mapped file that
// shrinks is a SIGBUS.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace attendant {

// Owns a descriptor. Reading is thread-safe.
class InputFile {
 public:
  // Opens a regular file of at most `max_bytes`; follows no symbolic link.
  // NOT_FOUND: no such file. INVALID_ARGUMENT: not regular, a link, too large. UNAVAILABLE: other.
  static absl::StatusOr<InputFile> Open(const std::string& path, int64_t max_bytes);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  int64_t size() const { return opened_.st_size; }

  // Fills `target` with the bytes from `offset` on; they must lie inside size().
  absl::Status ReadAt(int64_t offset, absl::Span<char> target) const;

  // OK if the path still names the file that was opened, with its size and time of modification.
  absl::Status CheckUnchanged() const;

 private:
  InputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  struct stat opened_ = {};
};

// The whole content of a small file, such as a config.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, int64_t max_bytes);

// True if something of that name exists, whatever it is.
bool PathExists(const std::string& path);

}  // namespace attendant
