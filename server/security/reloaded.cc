#include "server/security/reloaded.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/metrics/server_metrics.h"

namespace attendant::server {

absl::StatusOr<std::vector<std::string>> ReadFiles(const std::vector<std::string>& paths) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  std::vector<std::string> contents;
  for (const std::string& path : paths) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string bytes;
    char part[4096];
    do {
      file.read(part, sizeof part);
      bytes.append(part, static_cast<size_t>(file.gcount()));
    } while (file && bytes.size() <= kMaxBytes);
    if (!file.is_open() || file.bad() || (bytes.empty() && errno != 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
    }
    if (bytes.size() > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": expected at most ", kMaxBytes, " bytes; got more"));
    }
    contents.push_back(std::move(bytes));
  }
  return contents;
}

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
