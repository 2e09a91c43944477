#include "server/host/port_file.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

absl::Status CannotWrite(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat("--port-file: cannot write ", path));
}

}  // namespace

absl::Status CheckPortFile(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return CannotWrite(path);
}

absl::Status WritePortFile(const std::string& path, int port, int http_port) {
  if (path.empty()) return absl::OkStatus();
  const std::string unfinished = path + ".new";
  std::ofstream file(unfinished);
  file << "grpc_port=" << port << "\nhttp_port=" << http_port << "\n";
  file.close();
  if (!file || std::rename(unfinished.c_str(), path.c_str()) != 0) return CannotWrite(path);
  return absl::OkStatus();
}

}  // namespace attendant::server
