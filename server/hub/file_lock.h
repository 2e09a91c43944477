// FileLock, a lock among processes by a file.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace attendant::server {

// Holds flock(2) on a file until it is destroyed, as the Hub's own library does. The file stays.
class FileLock {
 public:
  // Makes the file if there is none, and waits until the lock is free. Calls `on_wait` once before
  // it waits for another process.
  static absl::StatusOr<FileLock> Take(const std::string& path,
                                       const std::function<void()>& on_wait);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  // False if the file system does not support locks, as on some clusters.
  bool is_exclusive() const { return is_exclusive_; }

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
  bool is_exclusive_ = true;
};

}  // namespace attendant::server
