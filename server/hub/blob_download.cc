#include "server/hub/blob_download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/digests.h"
#include "engine/checkpoint/files/input_file.h"
#include "server/hub/file_lock.h"

namespace attendant::server {
namespace {

constexpr int kMostTries = 5;
constexpr absl::Duration kLongestDelay = absl::Seconds(10);

// A file that grows as its bytes arrive. The destructor closes it.
class PartialFile {
 public:
  PartialFile(std::string path, int64_t expected, const std::function<void(int64_t)>& received)
      : path_(std::move(path)), expected_(expected), received_(received) {}
  ~PartialFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  // Opens the rest of an earlier download, or a new file.
  absl::Status Open() {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    struct stat file = {};
    if (descriptor_ < 0 || fstat(descriptor_, &file) != 0) return WriteError(path_, errno);
    Count(file.st_size);
    return size_ > expected_ ? Begin(0) : absl::OkStatus();
  }

  absl::Status Begin(int64_t offset) {
    if (ftruncate(descriptor_, offset) != 0) return WriteError(path_, errno);
    Count(offset - size_);
    return absl::OkStatus();
  }

  absl::Status Write(absl::string_view bytes) {
    if (static_cast<int64_t>(bytes.size()) > expected_ - size_) return WrongSize("more");
    while (!bytes.empty()) {
      const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), size_);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return WriteError(path_, errno);
      Count(written);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  // Returns OK if all bytes have been received and written to the disk.
  absl::Status Finish() {
    if (size_ < expected_) return WrongSize(absl::StrCat(size_));
    return fsync(descriptor_) == 0 ? absl::OkStatus() : WriteError(path_, errno);
  }

  int64_t size() const { return size_; }
  bool is_whole() const { return size_ == expected_; }

 private:
  void Count(int64_t bytes) {
    size_ += bytes;
    if (bytes != 0) received_(bytes);
  }

  absl::Status WrongSize(const std::string& got) const {
    return absl::DataLossError(
        absl::StrCat("expected ", expected_, " bytes (the size in the Hub's list); got ", got));
  }

  const std::string path_;
  const int64_t expected_;
  const std::function<void(int64_t)>& received_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// Compares the file with the digest in the Hub's list.
absl::Status CheckDigest(const std::string& path, const HubFile& expected) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path, expected.size));
  const bool is_lfs = expected.etag.size() == 64;
  ASSIGN_OR_RETURN(const std::string digest, is_lfs ? Sha256(file) : GitBlobSha1(file));
  if (digest == expected.etag) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expected the ", is_lfs ? "SHA-256 " : "Git SHA-1 ",
                                          expected.etag, " (from the Hub's list); got ", digest));
}

absl::Status About(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace

void Retries::Progressed() {
  left_ = most_;
  delay_ = first_;
}

bool Retries::Again(const absl::Status& status) {
  if (!absl::IsUnavailable(status) || --left_ <= 0) return false;
  absl::SleepFor(delay_);
  delay_ = std::min(2 * delay_, kLongestDelay);
  return true;
}

BlobDownload::BlobDownload(HubApi& api, const HubCache& cache, const HubOptions& options,
                           std::function<void(const std::string& line)> note,
                           std::function<void(int64_t bytes)> received)
    : api_(api),
      cache_(cache),
      retry_delay_(options.retry_delay),
      note_(std::move(note)),
      received_(std::move(received)) {}

absl::Status BlobDownload::Run(const std::string& commit, const std::string& path,
                               const HubFile& file) {
  const std::string blob = cache_.BlobPath(file.etag);
  if (HasRegularFile(blob, file.size)) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const FileLock lock, FileLock::Take(cache_.LockPath(file.etag), [&] {
        note_(absl::StrCat(path, ": waiting for another process that is downloading it"));
      }));
  if (HasRegularFile(blob, file.size)) {
    received_(file.size);
    return absl::OkStatus();
  }
  // Without a lock other processes may download it too, each to a file of its own.
  const std::string incomplete =
      lock.is_exclusive() ? blob + ".incomplete" : absl::StrCat(blob, ".", getpid(), ".incomplete");
  absl::Status status = Receive(commit, path, file, incomplete);
  if (absl::IsDataLoss(status) || !lock.is_exclusive()) {
    if (!status.ok()) unlink(incomplete.c_str());
  }
  if (!status.ok()) return About(path, status);
  if (std::rename(incomplete.c_str(), blob.c_str()) != 0) return WriteError(blob, errno);
  return absl::OkStatus();
}

absl::Status BlobDownload::Receive(const std::string& commit, const std::string& path,
                                   const HubFile& file, const std::string& incomplete) {
  PartialFile partial(incomplete, file.size, received_);
  absl::Status status = partial.Open();
  if (!status.ok()) return status;
  const HttpSink sink = {[&](int64_t offset) { return partial.Begin(offset); },
                         [&](absl::string_view bytes) { return partial.Write(bytes); }};
  bool is_resumed = partial.size() > 0;
  Retries retries(retry_delay_, kMostTries);
  while (true) {
    const int64_t before = partial.size();
    if (!partial.is_whole()) status = api_.Download(commit, path, partial.size(), sink);
    if (status.ok()) status = partial.Finish();
    if (status.ok()) status = CheckDigest(incomplete, file);
    if (status.ok()) return status;
    if (absl::IsDataLoss(status) && std::exchange(is_resumed, false)) {
      note_(absl::StrCat(path, ": ", status.message(), "; starting over"));
      if (status = partial.Begin(0); !status.ok()) return status;
      continue;
    }
    if (partial.size() > before) retries.Progressed();
    if (!retries.Again(status)) return status;
    note_(absl::StrCat(path, ": ", status.message(), "; trying again from byte ", partial.size()));
    is_resumed = is_resumed || partial.size() > 0;
  }
}

}  // namespace attendant::server
