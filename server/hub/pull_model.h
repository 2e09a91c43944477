// PullModel, which downloads a model of the Hugging Face Hub into the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/hub/hub_options.h"
#include "server/hub/hub_reference.h"

namespace attendant::server {

// The callbacks of a pull.
struct PullReport {
  // Called with a line about a retry, a wait or a fallback.
  std::function<void(const std::string& line)> note;
  // Called as bytes arrive, with the received bytes and the total.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct PulledModel {
  std::string folder;  // the snapshot in the cache: a directory of links
  std::string commit;
};

// Downloads the missing files of a repository (see ChooseFiles) into the cache. Does not write to a
// complete snapshot, so that a cache may be read-only. Other processes, also with the Hub's own
// library, may pull the same repository at the same time. An error is one line that begins with the
// reference and names the next step; afterwards, no incomplete model can be loaded, and the next
// pull continues.
absl::StatusOr<PulledModel> PullModel(const HubReference& reference, const HubOptions& options,
                                      const PullReport& report);

}  // namespace attendant::server
