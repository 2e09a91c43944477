#include "server/hub/pull_model.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"
#include "proto/byte_text.h"
#include "server/hub/blob_download.h"
#include "server/hub/hub_api.h"
#include "server/hub/hub_cache.h"
#include "server/hub/wanted_files.h"

namespace attendant::server {
namespace {

using proto::InMebibytes;

constexpr int kMostListTries = 3;
constexpr int64_t kMostSideFileBytes = int64_t{64} << 20;
constexpr int64_t kSpareBytes = int64_t{16} << 20;  // that a download leaves free

// Returns the size of a file; 0 if there is none.
int64_t SizeOfFile(const std::string& path) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 ? file.st_size : 0;
}

class Pull {
 public:
  Pull(const HubReference& reference, const HubOptions& options, const PullReport& report)
      : reference_(reference),
        options_(options),
        report_(report),
        cache_(options.cache, reference.repository),
        api_(options, reference),
        download_(api_, cache_, options, report.note,
                  [this](int64_t bytes) { CountReceived(bytes); }) {}

  absl::StatusOr<PulledModel> Run() {
    RETURN_IF_ERROR(List());
    ASSIGN_OR_RETURN(
        const std::vector<std::string> chosen,
        ChooseFiles(listing_, [this](const std::string& path) { return ReadText(path); }));
    absl::Status status = CheckSizes(chosen);
    for (size_t i = 0; status.ok() && i < chosen.size(); ++i) status = Fetch(chosen[i]);
    for (size_t i = 0; status.ok() && i < chosen.size(); ++i) status = Link(chosen[i]);
    if (!status.ok()) return status;
    status = cache_.WriteRef(reference_.revision, listing_.commit);
    if (!status.ok()) report_.note(absl::StrCat("cannot record the revision: ", status.message()));
    return PulledModel{cache_.SnapshotFolder(listing_.commit), listing_.commit};
  }

  // Finds a complete snapshot in the cache.
  absl::StatusOr<PulledModel> Find() {
    const absl::StatusOr<std::string> commit = cache_.ReadRef(reference_.revision);
    if (!commit.ok()) return NotCached(absl::StrCat("no revision ", reference_.revision));
    absl::StatusOr<HubListing> listing = cache_.List(*commit);
    if (!listing.ok()) return NotCached(absl::StrCat("no commit ", *commit));
    const auto read = [&](const std::string& path) {
      return ReadSmallFile(absl::StrCat(cache_.SnapshotFolder(*commit), "/", path),
                           kMostSideFileBytes);
    };
    const absl::StatusOr<std::vector<std::string>> chosen = ChooseFiles(*listing, read);
    if (!chosen.ok()) return NotCached(std::string(chosen.status().message()));
    for (const std::string& path : *chosen) {
      if (!cache_.HasFile(*commit, path, listing->files[path]))
        return NotCached(absl::StrCat("no ", path));
    }
    return PulledModel{cache_.SnapshotFolder(*commit), *commit};
  }

 private:
  absl::Status NotCached(const std::string& what) const {
    return absl::NotFoundError(
        absl::StrCat("not complete in the cache ", options_.cache, " (", what,
                     "); pull it once without --offline and HF_HUB_OFFLINE"));
  }

  absl::Status List() {
    Retries retries(options_.retry_delay, kMostListTries);
    while (true) {
      absl::StatusOr<HubListing> listing = api_.List();
      if (listing.ok()) {
        listing_ = *std::move(listing);
        return absl::OkStatus();
      }
      if (!retries.Again(listing.status())) return listing.status();
      report_.note(absl::StrCat(listing.status().message(), "; trying again"));
    }
  }

  bool IsThere(const std::string& path) const {
    return cache_.HasFile(listing_.commit, path, listing_.files.at(path));
  }

  // Gets the content of a file, unless the snapshot has it.
  absl::Status Fetch(const std::string& path) {
    if (IsThere(path)) return absl::OkStatus();
    absl::Status status = Complete(path);
    if (status.ok()) status = cache_.Prepare();
    return status.ok() ? download_.Run(listing_.commit, path, listing_.files.at(path)) : status;
  }

  absl::Status Complete(const std::string& path) {
    HubFile& file = listing_.files.at(path);
    if (!file.etag.empty() && file.size >= 0) return absl::OkStatus();
    return api_.Complete(listing_.commit, path, file);
  }

  absl::Status Link(const std::string& path) {
    if (IsThere(path)) return absl::OkStatus();
    return cache_.Link(listing_.commit, path, listing_.files.at(path).etag);
  }

  absl::StatusOr<std::string> ReadText(const std::string& path) {
    RETURN_IF_ERROR(CheckSideFile(path));
    const bool linked = IsThere(path);
    RETURN_IF_ERROR(Fetch(path));
    return ReadSmallFile(linked ? absl::StrCat(cache_.SnapshotFolder(listing_.commit), "/", path)
                                : cache_.BlobPath(listing_.files.at(path).etag),
                         kMostSideFileBytes);
  }

  absl::Status CheckSideFile(const std::string& path) const {
    const int64_t size = listing_.files.at(path).size;
    if (size <= kMostSideFileBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected at most ", kMostSideFileBytes, " bytes; got ", size));
  }

  // Checks the sizes that the Hub lists against the bounds and the free space.
  absl::Status CheckSizes(const std::vector<std::string>& chosen) {
    int64_t weights_left = options_.max_weight_bytes;
    for (const std::string& path : chosen) {
      absl::Status status = IsThere(path) ? absl::OkStatus() : Complete(path);
      if (status.ok() && !IsWeightFile(path)) status = CheckSideFile(path);
      if (!status.ok()) return status;
      const HubFile& file = listing_.files.at(path);
      if (IsWeightFile(path) && file.size > weights_left) {
        return absl::ResourceExhaustedError(absl::StrCat(
            path, ": expected weight files of at most ", InMebibytes(options_.max_weight_bytes),
            " in total (--max-model-bytes); got a file of ", InMebibytes(file.size)));
      }
      if (IsWeightFile(path)) weights_left -= std::max<int64_t>(file.size, 0);
      const std::string blob = cache_.BlobPath(file.etag);
      if (IsThere(path) || HasRegularFile(blob, file.size)) continue;
      to_receive_ += file.size;
      to_write_ += std::max<int64_t>(file.size - SizeOfFile(blob + ".incomplete"), 0);
    }
    counts_ = true;
    return to_receive_ == 0 ? absl::OkStatus() : CheckFreeSpace();
  }

  absl::Status CheckFreeSpace() const {
    RETURN_IF_ERROR(cache_.Prepare());
    struct statvfs disk = {};
    if (statvfs(cache_.blobs_folder().c_str(), &disk) != 0) return absl::OkStatus();
    const auto free = static_cast<int64_t>(
        std::min<uint64_t>(disk.f_bavail, INT64_MAX / std::max<uint64_t>(disk.f_frsize, 1)) *
        disk.f_frsize);
    if (free - kSpareBytes >= to_write_) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "needs ", InMebibytes(to_write_), " in ", options_.cache, ", which has ", InMebibytes(free),
        " left; free space, or choose another directory with --model-cache"));
  }

  void CountReceived(int64_t bytes) {
    if (!counts_) return;
    received_ += bytes;
    report_.progress(received_, to_receive_);
  }

  const HubReference& reference_;
  const HubOptions& options_;
  const PullReport& report_;
  const HubCache cache_;
  HubApi api_;
  BlobDownload download_;
  HubListing listing_;
  bool counts_ = false;  // once the missing files are known
  int64_t to_receive_ = 0, to_write_ = 0, received_ = 0;
};

// Returns whether a snapshot in the cache may be used after this error.
bool MayUseCache(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnauthenticated(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace

absl::StatusOr<PulledModel> PullModel(const HubReference& reference, const HubOptions& options,
                                      const PullReport& report) {
  Pull pull(reference, options, report);
  absl::StatusOr<PulledModel> model = options.offline ? pull.Find() : pull.Run();
  if (model.ok()) return model;
  if (!options.offline && options.falls_back_to_cache && MayUseCache(model.status())) {
    absl::StatusOr<PulledModel> cached = pull.Find();
    if (cached.ok()) {
      report.note(absl::StrCat(model.status().message(), "; using commit ", cached->commit,
                               " from the cache"));
      return cached;
    }
  }
  return absl::Status(model.status().code(),
                      absl::StrCat(ToText(reference), ": ", model.status().message()));
}

}  // namespace attendant::server
