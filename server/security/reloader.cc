#include "server/security/reloader.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace attendant::server {

Reloader::Reloader(std::vector<ReloadedItem> items, OnReload on_reload, absl::Duration interval)
    : items_(std::move(items)), on_reload_(std::move(on_reload)), interval_(interval) {
  thread_ = std::thread([this] { Run(); });
}

Reloader::~Reloader() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void Reloader::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), interval_)) return;
    }
    ReloadAll();
  }
}

void Reloader::ReloadAll() const {
  for (const ReloadedItem& item : items_) {
    const absl::StatusOr<bool> changed = item.reload();
    if (changed.ok() && !*changed) continue;
    if (changed.ok()) {
      spdlog::info("{}: new ones are in use", item.name);
    } else {
      spdlog::warn("{}: the last good ones stay in use: {}", item.name,
                   std::string(changed.status().message()));
    }
    on_reload_(item.name, changed.ok());
  }
}

}  // namespace attendant::server
