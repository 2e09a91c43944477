// ReportReload, which logs and counts reloads of changed files.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace attendant::server {

class ServerMetrics;

// `changed` is what Reloaded::Reload has returned. Logs and counts a reload that changed something
// or failed. `what` is such as "certificates".
void ReportReload(const std::string& what, const absl::StatusOr<bool>& changed,
                  ServerMetrics& metrics);

}  // namespace attendant::server
