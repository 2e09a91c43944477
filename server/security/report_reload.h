// ReportReload, which logs and counts reloads of changed files.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace attendant::server {

class ServerMetrics;

// `changed` is the result of Reloaded::Reload. Logs and counts a reload that succeeded or failed;
// ignores unchanged files. `what` is, for example, "certificates".
void ReportReload(const std::string& what, const absl::StatusOr<bool>& changed,
                  ServerMetrics& metrics);

}  // namespace attendant::server
