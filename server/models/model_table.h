// ModelTable, the models that are served now.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/models/served_model.h"

namespace attendant::server {

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

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const ServedModels> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
