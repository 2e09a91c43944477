#include "server/models/health_states.h"

namespace attendant::server {

void HealthStates::Set(const std::string& name, bool serving) {
  Change([&] {
    mutex_.AssertHeld();
    states_[name] = serving;
  });
}

void HealthStates::Remove(const std::string& name) {
  Change([&] {
    mutex_.AssertHeld();
    states_.erase(name);
  });
}

void HealthStates::Shutdown() {
  Change([&] {
    mutex_.AssertHeld();
    shut_down_ = true;
    for (auto& [name, serving] : states_) serving = false;
  });
}

std::optional<bool> HealthStates::Find(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto state = states_.find(name);
  return state == states_.end() ? std::nullopt : std::optional(state->second);
}

void HealthStates::Watch(const std::shared_ptr<const OnChange>& on_change) {
  absl::MutexLock lock(&mutex_);
  Watching();  // so that expired watchers do not accumulate
  watchers_.push_back(on_change);
}

void HealthStates::Change(const std::function<void()>& change) {
  Watchers watchers;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    change();
    watchers = Watching();
  }
  for (const auto& weak : watchers) {
    if (const auto on_change = weak.lock()) (*on_change)();
  }
}

const HealthStates::Watchers& HealthStates::Watching() {
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
  return watchers_;
}

}  // namespace attendant::server
