// ModelRepository, which keeps the served models as a folder has them.
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

// Checks that the folder can be listed and has none of the models, whose sources are others. An
// empty folder stands for no repository.
absl::Status CheckRepository(const std::string& folder, const std::vector<ModelSetting>& models);

// Called on the thread that polls, except for the first poll.
struct RepositoryHooks {
  // Loads a version so that it can be served at once. Does not throw.
  std::function<absl::StatusOr<std::shared_ptr<const ServedModel>>(const std::string& name,
                                                                   const VersionFolder& version)>
      load;
  std::function<void(const std::string& name, bool ok)> on_load;
  // The name is served from now on, or no longer.
  std::function<void(const std::string& name, bool served)> on_change;
  // Some versions have been retired: what they have made has to be dropped.
  std::function<void()> on_retired;
  // Called after every poll and whenever a version has been retired.
  std::function<void()> upkeep;
};

// A name means its newest version that can be loaded. Each change of a model is one replacement of
// the table, so that requests find the old version or the new one. A version that cannot be loaded
// changes nothing: the reason is logged once and told to callers, and it is tried again when its
// files have changed, or at every poll if it was RESOURCE_EXHAUSTED. A version that appears after
// the first poll is loaded once two polls have found the same files in it. If the version that is
// served is removed, the newest one left takes over; without any, the name is served no longer.
// Changed files of a served version are not looked at.
//
// Requests hold the version that they have found. One that is replaced is kept while they, or
// registered keys or sequences, use it, but for `drain_timeout` at most; then it is retired
// (ServedModel::retired).
class ModelRepository {
 public:
  // Serves `model_repository` of the settings. `table` has the models from other sources;
  // directories with those names are ignored. Only the repository changes it from now on. All
  // outlive the repository.
  ModelRepository(const Settings& settings, RepositoryHooks hooks, ModelTable& table, Clock& clock);
  // Stops; waits for a load that is under way.
  ~ModelRepository();

  // Polls once, and loads whatever is there without waiting for a second poll. Errors of
  // ScanRepository.
  absl::Status LoadAll();
  // Polls at intervals from now on, on a thread of its own.
  void Start();
  // Changes nothing from now on. Does not wait. Any thread.
  void Stop();

 private:
  // A version that could not be loaded.
  struct Refused {
    std::string files;     // VersionFolder::files
    bool may_fit = false;  // at another time
    std::string reason;    // for callers
  };
  struct Model {
    std::shared_ptr<const ServedModel> served;  // null: none
    std::map<int64_t, std::string> seen;        // VersionFolder::files of the last poll
    std::map<int64_t, Refused> refused;
  };
  struct Replaced {
    std::shared_ptr<const ServedModel> model;
    absl::Time until;
  };

  void Run();
  bool IsStopped();
  void Poll();
  void UpdateAll(const RepositoryScan& scan, bool first);
  void LogIgnored(const RepositoryScan& scan);
  void Update(const std::string& name, const std::vector<VersionFolder>& versions, bool first);
  // Returns whether some version serves, or may as soon as its files stay as they are.
  bool ServeNewest(const std::string& name, const std::vector<VersionFolder>& versions, bool first);
  bool Load(const std::string& name, const VersionFolder& version);
  void Refuse(const std::string& name, const VersionFolder& version, const absl::Status& why);
  // Null: none.
  void Serve(const std::string& name, std::shared_ptr<const ServedModel> model);
  void RetireDue();
  absl::Time NextRetirement() const;

  const Settings& settings_;
  const RepositoryHooks hooks_;
  ModelTable& table_;
  Clock& clock_;

  // Only the thread that polls uses these.
  std::set<std::string> other_names_;
  std::map<std::string, Model> models_;
  std::vector<Replaced> replaced_;
  std::set<std::string> ignored_;  // at the last poll
  std::string last_error_;         // of listing the folder; empty: none

  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant::server
