// A file of a model, opened once and read with pread. It is never mapped, because access to a
// mapped file that has shrunk raises SIGBUS.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace attendant {

// Files are read in chunks of this many bytes.
inline constexpr int64_t kChunkBytes = int64_t{1} << 20;

// Owns the file descriptor. Reading is thread-safe.
class InputFile {
 public:
  // Opens a regular file of at most `max_bytes`, or one that a symbolic link leads to. Returns
  // NOT_FOUND if there is no such file; INVALID_ARGUMENT if it is too large, not a regular file, or
  // a pointer of Git LFS in place of a file; UNAVAILABLE for other failures.
  static absl::StatusOr<InputFile> Open(const std::string& path, int64_t max_bytes);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  int64_t size() const { return opened_.st_size; }

  // Fills `target` with the bytes from `offset` on, which must lie within size().
  absl::Status ReadAt(int64_t offset, absl::Span<char> target) const;

  // Returns OK if the path still names the file that was opened, with the same size and time of
  // modification.
  absl::Status CheckUnchanged() const;

 private:
  InputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  struct stat opened_ = {};
};

// Reads the whole content of a small file, such as a config.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, int64_t max_bytes);

// Returns true if the path exists, as a file of any kind or as a symbolic link, even one that leads
// to nothing.
bool PathExists(const std::string& path);

}  // namespace attendant
