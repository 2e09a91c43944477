// ModelTable, the models that are served now.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/models/served_model.h"

namespace attendant::server {

// A version of a model that cannot be served.
struct RefusedVersion {
  int64_t version = 0;
  std::string reason;  // for callers

  bool operator==(const RefusedVersion&) const = default;
};

// Models come and go by replacing all of them at once, so that nobody sees half of a change. Those
// that have found a model hold it as long as they need it. Thread-safe.
class ModelTable {
 public:
  explicit ModelTable(ServedModels models = {}) { Replace(std::move(models)); }

  // Never null.
  std::shared_ptr<const ServedModels> Snapshot() const {
    absl::MutexLock lock(&mutex_);
    return models_;
  }

  void Replace(ServedModels models) {
    auto replaced = std::make_shared<const ServedModels>(std::move(models));
    absl::MutexLock lock(&mutex_);
    models_.swap(replaced);
  }

  // Further names of models, each with the model's own. Set before anybody else uses the table.
  void SetAliases(std::map<std::string, std::string> aliases) { aliases_ = std::move(aliases); }
  const std::map<std::string, std::string>& aliases() const { return aliases_; }
  // Returns the model's own name, if `name` is an alias; otherwise `name`.
  const std::string& Resolve(const std::string& name) const {
    const auto found = aliases_.find(name);
    return found == aliases_.end() ? name : found->second;
  }

  // The versions of the model of that name, served or not, that are refused now, the newest first.
  std::vector<RefusedVersion> Refused(const std::string& name) const {
    absl::MutexLock lock(&mutex_);
    const auto found = refused_.find(name);
    return found == refused_.end() ? std::vector<RefusedVersion>() : found->second;
  }

  // Those of all models.
  std::map<std::string, std::vector<RefusedVersion>> AllRefused() const {
    absl::MutexLock lock(&mutex_);
    return refused_;
  }

  void SetRefused(const std::string& name, std::vector<RefusedVersion> versions) {
    absl::MutexLock lock(&mutex_);
    refused_.erase(name);
    if (!versions.empty()) refused_.emplace(name, std::move(versions));
  }

 private:
  std::map<std::string, std::string> aliases_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::vector<RefusedVersion>> refused_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const ServedModels> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
