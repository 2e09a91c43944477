// HubCache, the files of one repository in the cache that the Hub's own library has too.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hub/hub_json.h"
#include "server/hub/hub_reference.h"

namespace attendant::server {

// The layout below the folder of the cache:
//   models--ORG--REPO/blobs/ETAG                 the content of a file
//   models--ORG--REPO/snapshots/COMMIT/PATH      a relative link to a blob
//   models--ORG--REPO/refs/REVISION              the last known commit of a branch or tag
//   .locks/models--ORG--REPO/ETAG.lock           locked with flock while a blob is made
// All functions return errors of the file system as WriteError does.
class HubCache {
 public:
  HubCache(const std::string& cache, const std::string& repository);

  const std::string& cache() const { return cache_; }
  std::string blobs_folder() const { return folder_ + "/blobs"; }
  std::string BlobPath(const std::string& etag) const { return folder_ + "/blobs/" + etag; }
  std::string LockPath(const std::string& etag) const;
  std::string SnapshotFolder(const std::string& commit) const;

  // Returns the commit of a revision; NOT_FOUND if the cache knows none.
  absl::StatusOr<std::string> ReadRef(const std::string& revision) const;
  // Records the commit of a revision, unless that is the commit itself.
  absl::Status WriteRef(const std::string& revision, const std::string& commit) const;

  // Returns whether the snapshot has the file, in the size that is known.
  bool HasFile(const std::string& commit, const std::string& path, const HubFile& file) const;
  // Makes the link of a snapshot to a blob.
  absl::Status Link(const std::string& commit, const std::string& path,
                    const std::string& etag) const;

  // Lists the files of a commit, from the list that the Hub's library has saved or else from the
  // snapshot itself. NOT_FOUND: there is no such snapshot.
  absl::StatusOr<HubListing> List(const std::string& commit) const;

  // Makes the folders of blobs and locks, and the tag that makes backup programs skip a cache.
  absl::Status Prepare() const;

 private:
  const std::string cache_, folder_, locks_;
};

// Makes a folder and those above it.
absl::Status MakeFolders(const std::string& folder);

// Returns whether the path, after links, is a regular file of that size; -1: of any size.
bool HasRegularFile(const std::string& path, int64_t size);

// The error of a system call that writes to a path: RESOURCE_EXHAUSTED if there is no space,
// PERMISSION_DENIED if the place cannot be written, else INTERNAL.
absl::Status WriteError(absl::string_view path, int error);

}  // namespace attendant::server
