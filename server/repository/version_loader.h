// VersionLoader, which loads versions of models while a server may be serving others.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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

// The settings and limits that all versions are loaded with. Everything outlives the loader.
struct LoaderOptions {
  const Settings& settings;
  const ThreadPlan& plan;
  MemoryLimit limit;
  MemoryNeed need;  // of the server without any version
  const Clock& clock;
  // Called with the bytes that requests may take whenever they change. False: they hold more.
  std::function<bool(int64_t bytes)> set_budget;
};

// One thread at a time, but for Stop.
class VersionLoader {
 public:
  explicit VersionLoader(LoaderOptions options) : options_(std::move(options)) {}

  // Opens, loads, prepares and probes a version, with the keys of --model that its file
  // "attendant.options" has, if it has one; a relative path for `prune` is in the folder. Before
  // its weights are read, the memory for requests shrinks by what it takes beside all versions that
  // are alive. RESOURCE_EXHAUSTED: too little would be left, or requests hold more now.
  // INVALID_ARGUMENT: its largest request would be larger than the server receives, or its options
  // are not those of a model. CANCELLED: after Stop. Also the errors of OpenCheckpoint, LoadModels
  // and ProbeModel. Nothing is thrown.
  absl::StatusOr<std::shared_ptr<const ServedModel>> Load(const std::string& name,
                                                          const VersionFolder& version);

  // Gives requests the memory of versions that are gone by now.
  void CollectFreed();

  // Ends a load that is under way, at its next tensor, and all later ones. Any thread.
  void Stop() { stopped_ = true; }

 private:
  struct Alive {
    std::weak_ptr<const ServedModel> model;
    MemoryNeed need;  // weights and activations
  };

  absl::StatusOr<std::shared_ptr<const ServedModel>> TryLoad(const std::string& name,
                                                             const VersionFolder& version);
  absl::StatusOr<MemoryNeed> TakeMemory(const OpenedModel& opened);
  MemoryNeed NeedOfAlive() const;

  const LoaderOptions options_;
  std::vector<Alive> alive_;
  bool shrunk_ = false;  // for a version that has not been loaded yet
  std::atomic<bool> stopped_ = false;
};

}  // namespace attendant::server
