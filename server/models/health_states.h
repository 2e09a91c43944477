// HealthStates: whether the server, its service and its models are serving.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

class HealthWatcher {
 public:
  virtual ~HealthWatcher() = default;
  // Called after a state may have changed, on the thread that changed it, without locks.
  virtual void OnChange() = 0;
};

// The name "" is the server as a whole, which serves from the start. Thread-safe.
class HealthStates {
 public:
  // Adds the name or changes its state. Does nothing after Shutdown.
  void Set(const std::string& name, bool serving);
  // Forgets the name, which is then unknown. Does nothing after Shutdown.
  void Remove(const std::string& name);
  // From now on no name serves. Does not allocate, because a draining server must continue.
  void Shutdown();

  // Returns whether the name serves; nothing if it is unknown.
  std::optional<bool> Find(const std::string& name) const;

  // Calls OnChange after every change from now on, as long as the watcher exists.
  void Watch(const std::shared_ptr<HealthWatcher>& watcher);

 private:
  using Watchers = std::vector<std::weak_ptr<HealthWatcher>>;

  static void Notify(const Watchers& watchers);
  // Drops expired watchers, and returns the others.
  const Watchers& Watching() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, bool> states_ ABSL_GUARDED_BY(mutex_) = {{"", true}};
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  Watchers watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
