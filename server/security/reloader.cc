#include "server/security/reloader.h"

#include <spdlog/spdlog.h>

namespace attendant::server {

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
