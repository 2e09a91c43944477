#include "server/models/health_states.h"

namespace attendant::server {

void HealthStates::Set(const std::string& name, bool serving) {
  Watchers watchers;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    states_[name] = serving;
    watchers = Watching();
  }
  Notify(watchers);
}

void HealthStates::Remove(const std::string& name) {
  Watchers watchers;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    states_.erase(name);
    watchers = Watching();
  }
  Notify(watchers);
}

void HealthStates::Shutdown() {
  Watchers watchers;
  {
    absl::MutexLock lock(&mutex_);
    shut_down_ = true;
    for (auto& [name, serving] : states_) serving = false;
    watchers.swap(watchers_);  // there is no further change
  }
  Notify(watchers);
}

std::optional<bool> HealthStates::Find(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto state = states_.find(name);
  return state == states_.end() ? std::nullopt : std::optional(state->second);
}

void HealthStates::Watch(const std::shared_ptr<HealthWatcher>& watcher) {
  absl::MutexLock lock(&mutex_);
  Watching();  // so that expired watchers do not accumulate
  watchers_.push_back(watcher);
}

void HealthStates::Notify(const Watchers& watchers) {
  for (const std::weak_ptr<HealthWatcher>& weak : watchers) {
    if (const auto watcher = weak.lock()) watcher->OnChange();
  }
}

const HealthStates::Watchers& HealthStates::Watching() {
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
  return watchers_;
}

}  // namespace attendant::server
