// HubCache, one repository's files in the cache shared with the Hub's own library.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hub/hub_json.h"
#include "server/hub/hub_reference.h"

namespace attendant::server {

// The layout below the cache directory:
//   models--ORG--REPO/blobs/ETAG                 the content of a file
//   models--ORG--REPO/snapshots/COMMIT/PATH      a relative link to a blob
//   models--ORG--REPO/refs/REVISION              the last known commit of a branch or tag
//   .locks/models--ORG--REPO/ETAG.lock           locked with flock while a blob is made
// All functions return file system errors as WriteError does.
class HubCache {
 public:
  HubCache(const std::string& cache, const std::string& repository);

  const std::string& cache() const { return cache_; }
  std::string blobs_folder() const { return folder_ + "/blobs"; }
  std::string BlobPath(const std::string& etag) const { return folder_ + "/blobs/" + etag; }
  std::string LockPath(const std::string& etag) const;
  std::string SnapshotFolder(const std::string& commit) const;

  // Returns the commit of a revision, or NOT_FOUND if it is not in the cache.
  absl::StatusOr<std::string> ReadRef(const std::string& revision) const;
  // Records the commit of a revision unless the revision is that commit.
  absl::Status WriteRef(const std::string& revision, const std::string& commit) const;

  // Returns whether the snapshot has the file with the given size, if known.
  bool HasFile(const std::string& commit, const std::string& path, const HubFile& file) const;
  // Links a snapshot's file to a blob.
  absl::Status Link(const std::string& commit, const std::string& path,
                    const std::string& etag) const;

  // Lists the files of a commit, from the list saved by the Hub's library if present, otherwise
  // from the snapshot. Returns NOT_FOUND if there is no such snapshot.
  absl::StatusOr<HubListing> List(const std::string& commit) const;

  // Creates the directories of blobs and locks, and the tag that makes backup programs skip the
  // cache.
  absl::Status Prepare() const;

 private:
  const std::string cache_, folder_, locks_;
};

// Creates a directory and its parents.
absl::Status MakeFolders(const std::string& folder);

// Returns whether the path, following links, is a regular file of this size; -1 accepts any size.
bool HasRegularFile(const std::string& path, int64_t size);

// Returns the error of a system call that writes to a path: RESOURCE_EXHAUSTED if the disk is full,
// PERMISSION_DENIED if the path is not writable, otherwise INTERNAL.
absl::Status WriteError(absl::string_view path, int error);

}  // namespace attendant::server
