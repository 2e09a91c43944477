#include "engine/checkpoint/files/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

// The beginning and the largest size of a Git LFS pointer, by its specification.
constexpr absl::string_view kPointerStart = "version https://git-lfs.github.com/spec/v1";
constexpr int64_t kMostPointerBytes = 1024;

absl::Status OpenError(const std::string& path, int error) {
  if ((error == ENOENT || error == ENOTDIR) && PathExists(path)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": expected a file; got a symbolic link to a missing file"));
  }
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  return absl::UnavailableError(absl::StrCat(path, ": cannot open: ", std::strerror(error)));
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Refuses the pointer that a clone without git-lfs has in place of a file.
absl::Status RefusePointer(const InputFile& file) {
  std::string start(kPointerStart.size(), '\0');
  if (file.size() < static_cast<int64_t>(start.size()) || file.size() > kMostPointerBytes) {
    return absl::OkStatus();
  }
  absl::Status status = file.ReadAt(0, absl::MakeSpan(start));
  if (!status.ok() || start != kPointerStart) return status;
  return InvalidArgument(
      file.path(),
      ": expected the file itself; got a Git LFS pointer to it; run git lfs pull in its directory");
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(const std::string& path, int64_t max_bytes) {
  // O_NONBLOCK is set because opening a FIFO must not wait for a writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return OpenError(path, errno);
  InputFile file(path, descriptor);
  if (fstat(descriptor, &file.opened_) != 0) return OpenError(path, errno);
  if (!S_ISREG(file.opened_.st_mode)) {
    return InvalidArgument(path, ": expected a regular file; got a ",
                           S_ISDIR(file.opened_.st_mode) ? "directory" : "device, pipe or socket");
  }
  if (file.size() > max_bytes) {
    return InvalidArgument(path, ": expected at most ", max_bytes, " bytes; got ", file.size());
  }
  RETURN_IF_ERROR(RefusePointer(file));
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      opened_(other.opened_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status InputFile::ReadAt(int64_t offset, absl::Span<char> target) const {
  size_t done = 0;
  while (done < target.size()) {
    const ssize_t got = pread(descriptor_, target.data() + done, target.size() - done,
                              offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(absl::StrCat(path_, ": cannot read: ", std::strerror(errno)));
    }
    if (got == 0) {
      return InvalidArgument(path_, ": changed while it was read: expected ", size(),
                             " bytes; got ", offset + static_cast<int64_t>(done));
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status InputFile::CheckUnchanged() const {
  struct stat now = {};
  if (stat(path_.c_str(), &now) == 0 && SameFile(now, opened_)) return absl::OkStatus();
  return InvalidArgument(
      path_, ": changed while it was read: its size, modification time or inode differs");
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path, max_bytes));
  std::string content(static_cast<size_t>(file.size()), '\0');
  RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(content)));
  RETURN_IF_ERROR(file.CheckUnchanged());
  return content;
}

bool PathExists(const std::string& path) {
  struct stat unused = {};
  return lstat(path.c_str(), &unused) == 0;
}

}  // namespace attendant
