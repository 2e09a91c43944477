// FileLock, a lock file shared with other processes.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace attendant::server {

// Holds flock(2) on a file until destroyed, like the Hub's own library. The file remains.
class FileLock {
 public:
  // Creates the file if necessary, and waits for the lock. Calls `on_wait` once before it waits for
  // another process.
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
