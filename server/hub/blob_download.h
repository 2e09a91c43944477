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

// Not thread-safe. All arguments must outlive it.
class BlobDownload {
 public:
  // `note` gets lines about retries and waits, and `received` the number of bytes that arrive,
  // negative for discarded ones.
  BlobDownload(HubApi& api, const HubCache& cache, const HubOptions& options,
               std::function<void(const std::string& line)> note,
               std::function<void(int64_t bytes)> received);

  // Downloads a file's blob unless the cache has one of its size. Waits for another process that
  // downloads the same blob. Writes to BLOB.incomplete, continuing an earlier download, and renames
  // it once its size and digest match and it is on disk. Errors name the file. Returns DATA_LOSS if
  // the content differs from the Hub's list.
  absl::Status Run(const std::string& commit, const std::string& path, const HubFile& file);

 private:
  absl::Status Receive(const std::string& commit, const std::string& path, const HubFile& file,
                       const std::string& incomplete);

  HubApi& api_;
  const HubCache& cache_;
  const absl::Duration retry_delay_;
  const std::function<void(const std::string& line)> note_;
  const std::function<void(int64_t bytes)> received_;
};

// Decides whether to retry work that fails with UNAVAILABLE: at most `most` attempts in a row
// without progress, with growing delays.
class Retries {
 public:
  Retries(absl::Duration delay, int most)
      : first_(delay), delay_(delay), left_(most), most_(most) {}

  // Restarts the count.
  void Progressed();
  // Returns whether to retry after this error, having waited if so.
  bool Again(const absl::Status& status);

 private:
  const absl::Duration first_;
  absl::Duration delay_;
  int left_;
  const int most_;
};

}  // namespace attendant::server
