#include "server/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"

namespace attendant::server {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRefBytes = 256;

constexpr char kCacheTag[] =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag, see https://bford.info/cachedir/\n";

// Returns an unused name in the folder of `path`.
std::string TemporaryName(const std::string& path) {
  static std::atomic<int> count = 0;
  return absl::StrCat(path, ".", getpid(), ".", ++count, ".tmp");
}

absl::Status MoveInto(const std::string& temporary, const std::string& path) {
  if (rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  unlink(temporary.c_str());
  return WriteError(path, error);
}

// Writes a small file as a whole or not at all.
absl::Status WriteWhole(const std::string& path, absl::string_view content) {
  const std::string temporary = TemporaryName(path);
  unlink(temporary.c_str());  // it may be another user's link to a file of this one
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return WriteError(path, errno);
  const ssize_t written = write(file, content.data(), content.size());
  const int error = written < 0 ? errno : ENOSPC;
  const bool whole = written == static_cast<ssize_t>(content.size()) && fsync(file) == 0;
  close(file);
  if (whole) return MoveInto(temporary, path);
  unlink(temporary.c_str());
  return WriteError(path, error);
}

// Returns the path of a blob from a file `path` of a snapshot.
std::string LinkTarget(const std::string& path, const std::string& etag) {
  std::string up = "../../";
  for (const char c : path) {
    if (c == '/') up += "../";
  }
  return absl::StrCat(up, "blobs/", etag);
}

}  // namespace

absl::Status WriteError(absl::string_view path, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const bool is_denied = error == EACCES || error == EPERM || error == EROFS;
  return absl::Status(is_full     ? absl::StatusCode::kResourceExhausted
                      : is_denied ? absl::StatusCode::kPermissionDenied
                                  : absl::StatusCode::kInternal,
                      absl::StrCat("cannot write ", path, ": ", std::strerror(error),
                                   is_full ? "; free space, or" : ";",
                                   " choose another directory with --model-cache"));
}

absl::Status MakeFolders(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? WriteError(folder, error.value()) : absl::OkStatus();
}

bool HasRegularFile(const std::string& path, int64_t size) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
         (size < 0 || file.st_size == size);
}

HubCache::HubCache(const std::string& cache, const std::string& repository)
    : cache_(cache),
      folder_(absl::StrCat(cache, "/models--", absl::StrReplaceAll(repository, {{"/", "--"}}))),
      locks_(absl::StrCat(cache, "/.locks/models--",
                          absl::StrReplaceAll(repository, {{"/", "--"}}))) {}

std::string HubCache::LockPath(const std::string& etag) const {
  return absl::StrCat(locks_, "/", etag, ".lock");
}

std::string HubCache::SnapshotFolder(const std::string& commit) const {
  return absl::StrCat(folder_, "/snapshots/", commit);
}

absl::StatusOr<std::string> HubCache::ReadRef(const std::string& revision) const {
  if (IsCommit(revision)) return revision;
  ASSIGN_OR_RETURN(const std::string text,
                   ReadSmallFile(absl::StrCat(folder_, "/refs/", revision), kMostRefBytes));
  std::string commit(absl::StripAsciiWhitespace(text));
  if (IsCommit(commit)) return commit;
  return absl::NotFoundError(absl::StrCat(folder_, "/refs/", revision,
                                          ": expected 40 hexadecimal digits; got something else"));
}

absl::Status HubCache::WriteRef(const std::string& revision, const std::string& commit) const {
  const absl::StatusOr<std::string> known = ReadRef(revision);
  if (known.ok() && *known == commit) return absl::OkStatus();
  const std::string path = absl::StrCat(folder_, "/refs/", revision);
  absl::Status status = MakeFolders(path.substr(0, path.rfind('/')));
  return status.ok() ? WriteWhole(path, commit) : status;
}

bool HubCache::HasFile(const std::string& commit, const std::string& path,
                       const HubFile& file) const {
  return HasRegularFile(absl::StrCat(SnapshotFolder(commit), "/", path), file.size);
}

absl::Status HubCache::Link(const std::string& commit, const std::string& path,
                            const std::string& etag) const {
  const std::string link = absl::StrCat(SnapshotFolder(commit), "/", path);
  RETURN_IF_ERROR(MakeFolders(link.substr(0, link.rfind('/'))));
  const std::string temporary = TemporaryName(link);
  unlink(temporary.c_str());
  if (symlink(LinkTarget(path, etag).c_str(), temporary.c_str()) != 0) {
    return WriteError(link, errno);
  }
  return MoveInto(temporary, link);
}

absl::StatusOr<HubListing> HubCache::List(const std::string& commit) const {
  const std::string snapshot = SnapshotFolder(commit);
  std::error_code error;
  if (!fs::is_directory(snapshot, error)) {
    return absl::NotFoundError(absl::StrCat(snapshot, ": no such directory"));
  }
  const absl::StatusOr<std::string> tree =
      ReadSmallFile(absl::StrCat(folder_, "/trees/", commit, ".json"), kMostListingBytes);
  if (tree.ok()) {
    absl::StatusOr<HubListing> listing = ParseTree(*tree, commit);
    if (listing.ok()) return listing;
  }
  HubListing listing = {commit, {}};
  for (fs::recursive_directory_iterator entry(snapshot, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!HasRegularFile(entry->path().string(), -1)) continue;
    listing.files[entry->path().string().substr(snapshot.size() + 1)] = {};
  }
  if (error) return absl::UnavailableError(absl::StrCat(snapshot, ": ", error.message()));
  return listing;
}

absl::Status HubCache::Prepare() const {
  for (const std::string& folder : {blobs_folder(), locks_}) {
    RETURN_IF_ERROR(MakeFolders(folder));
  }
  const std::string tag = cache_ + "/CACHEDIR.TAG";
  if (!HasRegularFile(tag, -1)) WriteWhole(tag, kCacheTag).IgnoreError();
  return absl::OkStatus();
}

}  // namespace attendant::server
