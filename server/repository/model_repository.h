// ModelRepository, which serves the models in a directory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/models/model_table.h"
#include "server/repository/repository_scan.h"
#include "server/settings/settings.h"

namespace attendant::server {

// Checks that the directory can be listed and contains none of `models`, which have other sources.
// An empty path means no repository.
absl::Status CheckRepository(const std::string& folder, const std::vector<ModelSetting>& models);

// Called on the polling thread, except for the first poll.
struct RepositoryHooks {
  // Loads a version and prepares it for serving. Must not throw.
  std::function<absl::StatusOr<std::shared_ptr<const ServedModel>>(const std::string& name,
                                                                   const VersionFolder& version)>
      load;
  std::function<void(const std::string& name, bool ok)> on_load;
  // The name is now served, or no longer.
  std::function<void(const std::string& name, bool served)> on_change;
  // Some versions have been retired: drop the data that they created.
  std::function<void()> on_retired;
  // Called after every poll and after each retirement.
  std::function<void()> upkeep;
};

// Each name is served by its newest loadable version. Each change replaces a model's table entry at
// once, so that requests find either the old or the new version. A version that fails to load
// changes nothing: the reason is logged once and reported to clients, and loading is retried when
// its files change, or at every poll for RESOURCE_EXHAUSTED. A version that appears after the first
// poll is loaded once two polls find the same files. If the served version is removed, the newest
// remaining one takes over; without one, the name is no longer served. Changes to the files of a
// served version are ignored.
//
// Requests keep the version that they found. A replaced version stays until they, and registered
// keys and sequences, no longer use it, but at most for `drain_timeout`; then it is retired
// (ServedModel::retired).
class ModelRepository {
 public:
  // Serves `model_repository` of the settings. `table` holds the models from other sources, and
  // aliases. Directories with the name of a model are ignored, and after LoadAll also those with
  // the name of an alias. From now on, only the repository changes the table. All arguments must
  // outlive the repository.
  ModelRepository(const Settings& settings, RepositoryHooks hooks, ModelTable& table, Clock& clock);
  // Stops, and waits for a load in progress.
  ~ModelRepository();

  // Polls once and loads every model without waiting for a second poll. Returns the errors of
  // ScanRepository.
  absl::Status LoadAll();
  // Starts a thread that polls at intervals.
  void Start();
  // Stops all changes. Does not wait. Thread-safe.
  void Stop();

 private:
  // A version that failed to load.
  struct Refused {
    std::string files;     // VersionFolder::files
    bool may_fit = false;  // at another time
    std::string reason;    // shown to clients
  };
  struct Model {
    std::shared_ptr<const ServedModel> served;  // null if none
    std::map<int64_t, std::string> seen;        // VersionFolder::files at the last poll
    std::map<int64_t, Refused> refused;
  };
  // Versions that are not served any more, by the time at which they are retired at the latest.
  using Replaced = std::multimap<absl::Time, std::shared_ptr<const ServedModel>>;

  void Run();
  bool IsStopped();
  void Poll();
  void UpdateAll(const RepositoryScan& scan, bool first);
  void LogIgnored(const RepositoryScan& scan);
  void Update(const std::string& name, const std::vector<VersionFolder>& versions, bool first);
  // Returns whether a version is served, or may be once its files are stable.
  bool ServeNewest(const std::string& name, const std::vector<VersionFolder>& versions, bool first);
  bool Load(const std::string& name, const VersionFolder& version);
  void Refuse(const std::string& name, const VersionFolder& version, const absl::Status& why);
  // If `model` is null, stops serving `name`.
  void Serve(const std::string& name, std::shared_ptr<const ServedModel> model);
  void RetireDue();

  const Settings& settings_;
  const RepositoryHooks hooks_;
  ModelTable& table_;
  Clock& clock_;

  // Used only by the polling thread.
  std::map<std::string, const char*> other_names_;  // each with the flag that sets it
  std::map<std::string, Model> models_;
  Replaced replaced_;              // not retired yet
  std::set<std::string> ignored_;  // at the last poll
  std::string last_error_;         // of listing the directory; or empty

  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant::server
