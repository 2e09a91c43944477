// Reloader, which looks at files for changes.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant::server {

// Something to reload, such as a Reloaded.
struct ReloadedItem {
  std::string name;  // in the log and as a label of metrics, such as "certificates"
  std::function<absl::StatusOr<bool>()> reload;
};

// Reloads every item at intervals, on a thread of its own, and logs what has come of it.
class Reloader {
 public:
  // Called after each reload that changed something (ok) or failed.
  using OnReload = std::function<void(const std::string& name, bool ok)>;

  Reloader(std::vector<ReloadedItem> items, OnReload on_reload,
           absl::Duration interval = absl::Seconds(1));
  ~Reloader();

 private:
  void Run();
  void ReloadAll() const;

  const std::vector<ReloadedItem> items_;
  const OnReload on_reload_;
  const absl::Duration interval_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant::server
