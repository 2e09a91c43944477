// BlobDownload, which downloads files into the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/hub/hub_api.h"
#include "server/hub/hub_cache.h"
#include "server/hub/hub_options.h"

namespace attendant::server {

// Not thread-safe. Everything outlives it.
class BlobDownload {
 public:
  struct Hooks {
    std::function<void(const std::string& line)> note;
    std::function<void(int64_t bytes)> received;  // negative: bytes were dropped
  };
  BlobDownload(HubApi& api, const HubCache& cache, const HubOptions& options, Hooks hooks);

  // Makes the blob of a file, unless there is one of its size. Waits for any other process that
  // makes the same blob. Writes to BLOB.incomplete, continuing an earlier download, and renames the
  // file once its size and digest are right and it is on the disk. Errors name the file. DATA_LOSS:
  // the content differs from the Hub's list.
  absl::Status Run(const std::string& commit, const std::string& path, const HubFile& file);

 private:
  absl::Status Receive(const std::string& commit, const std::string& path, const HubFile& file,
                       const std::string& incomplete);

  HubApi& api_;
  const HubCache& cache_;
  const absl::Duration retry_delay_;
  const Hooks hooks_;
};

// Decides about retries of work that fails with UNAVAILABLE: at most `most` attempts in a row
// without progress, with growing waits in between.
class Retries {
 public:
  Retries(absl::Duration delay, int most)
      : first_(delay), delay_(delay), left_(most), most_(most) {}

  // Counts from the beginning again.
  void Progressed();
  // Returns whether to try again after this error, and waits before it does.
  bool Again(const absl::Status& status);

 private:
  const absl::Duration first_;
  absl::Duration delay_;
  int left_;
  const int most_;
};

}  // namespace attendant::server
