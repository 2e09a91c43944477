#include "server/security/report_reload.h"

#include <spdlog/spdlog.h>

#include "server/metrics/server_metrics.h"

namespace attendant::server {

void ReportReload(const std::string& what, const absl::StatusOr<bool>& changed,
                  ServerMetrics& metrics) {
  if (changed.ok() && !*changed) return;
  if (changed.ok()) {
    spdlog::info("{}: reloaded", what);
  } else {
    spdlog::warn("{}: not reloaded, keeping the last good ones: {}", what,
                 std::string(changed.status().message()));
  }
  metrics.RecordReload(what, changed.ok());
}

}  // namespace attendant::server
