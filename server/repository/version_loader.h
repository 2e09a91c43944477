// VersionLoader, which loads versions of models while the server is running.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/host/memory_limit.h"
#include "server/host/thread_plan.h"
#include "server/models/model_loading.h"
#include "server/models/served_model.h"
#include "server/repository/repository_scan.h"
#include "server/settings/settings.h"

namespace attendant::server {

// Settings and limits for all versions. All objects must outlive the loader.
struct LoaderOptions {
  const Settings& settings;
  const ThreadPlan& plan;
  MemoryLimit limit;
  MemoryNeed need;  // of the server without any version
  const Clock& clock;
  // Called with the new memory budget for requests. Returns false if they hold more.
  std::function<bool(int64_t bytes)> set_budget;
};

// Not thread-safe, except for Stop.
class VersionLoader {
 public:
  explicit VersionLoader(LoaderOptions options) : options_(std::move(options)) {}

  // Opens, loads, prepares and probes a version, with the --model keys in its file
  // "attendant.options", if any; a relative `prune` path is in the version's directory. Before
  // reading weights, reduces the memory for requests by the memory that it needs in addition to all
  // live versions. Returns RESOURCE_EXHAUSTED if too little would be left or requests hold more
  // now; INVALID_ARGUMENT if its largest request exceeds the server's limit or its options are
  // invalid; CANCELLED after Stop; and the errors of OpenCheckpoint, LoadModels and ProbeModel.
  // Does not throw.
  absl::StatusOr<std::shared_ptr<const ServedModel>> Load(const std::string& name,
                                                          const VersionFolder& version);

  // Returns the memory of destroyed versions to requests.
  void CollectFreed();

  // Ends a load in progress at its next tensor, and all later loads. Thread-safe.
  void Stop() { stopped_ = true; }

 private:
  absl::StatusOr<std::shared_ptr<const ServedModel>> TryLoad(const std::string& name,
                                                             const VersionFolder& version);
  absl::StatusOr<MemoryNeed> TakeMemory(const OpenedModel& opened);
  MemoryNeed NeedOfAlive() const;

  const LoaderOptions options_;
  // Loaded versions, with their weights and activations.
  std::vector<std::pair<std::weak_ptr<const ServedModel>, MemoryNeed>> alive_;
  bool shrunk_ = false;  // for a version not loaded yet
  std::atomic<bool> stopped_ = false;
};

}  // namespace attendant::server
