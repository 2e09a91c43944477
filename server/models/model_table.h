// ModelTable, the models being served.
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
  std::string reason;  // shown to clients

  bool operator==(const RefusedVersion&) const = default;
};

// All models are replaced at once, so that readers never see a partial change. Readers keep the
// models that they use alive. Thread-safe.
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

  // Sets further names for models, as alias -> model name. Call before any other thread uses the
  // table.
  void SetAliases(std::map<std::string, std::string> aliases) { aliases_ = std::move(aliases); }
  const std::map<std::string, std::string>& aliases() const { return aliases_; }
  // Returns the model's own name if `name` is an alias, otherwise `name`.
  const std::string& Resolve(const std::string& name) const {
    const auto found = aliases_.find(name);
    return found == aliases_.end() ? name : found->second;
  }

  // Returns the versions of this model, served or not, that are currently refused, newest first.
  std::vector<RefusedVersion> Refused(const std::string& name) const {
    absl::MutexLock lock(&mutex_);
    const auto found = refused_.find(name);
    return found == refused_.end() ? std::vector<RefusedVersion>() : found->second;
  }

  // Returns the refused versions of all models.
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
