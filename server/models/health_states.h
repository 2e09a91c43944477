// HealthStates: whether the server, its service and its models are serving.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

// The name "" is the server as a whole, which serves from the start. Thread-safe.
class HealthStates {
 public:
  // Adds the name or changes its state. Does nothing after Shutdown.
  void Set(const std::string& name, bool serving);
  // Forgets the name, which is then unknown. Does nothing after Shutdown.
  void Remove(const std::string& name);
  // From now on no name serves.
  void Shutdown();

  // Returns whether the name serves; nothing if it is unknown.
  std::optional<bool> Find(const std::string& name) const;

  // Calls `on_change` after every possible change from now on, on the thread that makes it and
  // without locks, as long as the function exists.
  using OnChange = std::function<void()>;
  void Watch(const std::shared_ptr<const OnChange>& on_change);

 private:
  using Watchers = std::vector<std::weak_ptr<const OnChange>>;

  // Changes states and calls the watchers. Does nothing after Shutdown.
  void Change(const std::function<void()>& change);
  // Drops those that are gone, and returns the others.
  const Watchers& Watching() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, bool> states_ ABSL_GUARDED_BY(mutex_) = {{"", true}};
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  Watchers watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
