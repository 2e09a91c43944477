// Reading and writing of untrusted files: sizes stated in a file are checked against the size of
// the file before use.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant::client {

// A regular file that is open for reading, front to back or at any offset. Errors begin with its
// path. Not thread-safe.
class InputFile {
 public:
  // NOT_FOUND: there is no such file. INVALID_ARGUMENT: it is not a regular file.
  // PERMISSION_DENIED: it cannot be read.
  static absl::StatusOr<InputFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }

  // Returns `count` bytes from `offset` on. INVALID_ARGUMENT, before anything is allocated: they
  // reach beyond the end of the file.
  absl::StatusOr<std::string> Read(int64_t offset, int64_t count);

  // Returns INVALID_ARGUMENT with the path and `what`.
  absl::Status Error(const std::string& what) const;

 private:
  InputFile(std::string path, int64_t size, std::ifstream stream);

  std::string path_;
  int64_t size_;
  std::ifstream stream_;
};

// Returns INVALID_ARGUMENT unless the file can be opened for writing. Keeps its contents; creates
// it if it does not exist.
absl::Status CheckWritable(const std::string& path);

// Writes `head` and then `body`, and replaces the file if it exists.
absl::Status WriteFile(const std::string& path, const std::string& head, const std::string& body);

}  // namespace attendant::client
