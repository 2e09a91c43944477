#include "server/hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/hub/hub_cache.h"

namespace attendant::server {
namespace {

// Returns whether the path still names the file: a holder before may have removed it.
bool StillNames(const std::string& path, int descriptor) {
  struct stat named = {}, locked = {};
  return stat(path.c_str(), &named) == 0 && fstat(descriptor, &locked) == 0 &&
         named.st_dev == locked.st_dev && named.st_ino == locked.st_ino;
}

int LockDescriptor(int descriptor, int operation) {
  int result = 0;
  do {
    result = flock(descriptor, operation);
  } while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Take(const std::string& path,
                                        const std::function<void()>& on_wait) {
  bool waited = false;
  while (true) {
    // The Hub's library uses the same mode, so that users can share a cache.
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0664);
    if (descriptor < 0) return WriteError(path, errno);
    FileLock lock(descriptor);
    if (LockDescriptor(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) {
        lock.is_exclusive_ = false;
        return lock;
      }
      if (!std::exchange(waited, true)) on_wait();
      if (LockDescriptor(descriptor, LOCK_EX) != 0) return WriteError(path, errno);
    }
    if (StillNames(path, descriptor)) return lock;
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), is_exclusive_(other.is_exclusive_) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace attendant::server
