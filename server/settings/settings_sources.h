// The three places that settings come from, each as names and texts, before anything is parsed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::server {

struct SettingsSource {
  std::map<std::string, std::vector<std::string>>
      texts;  // by setting name, in the order in which they came
  std::map<std::string, std::string>
      labels;  // by setting name: how errors name it, such as "--port"
};

// What is no setting, but decides what to do with them.
struct CommandLine {
  SettingsSource flags;
  std::string config_file;  // of --config
  bool help = false;
  bool version = false;
  std::optional<std::string> describe;  // SOURCE[,key=value…]
  bool json = false;
  bool ranks = false;
};

// All refuse names that are no setting, with the nearest one that is.
absl::StatusOr<CommandLine> ReadFlags(const std::vector<std::string>& arguments);
// ATTENDANT_CONFIG goes to `config_file`, unless a flag has set it.
absl::StatusOr<SettingsSource> ReadVariables(
    const std::vector<std::pair<std::string, std::string>>& environment, std::string& config_file);
absl::StatusOr<SettingsSource> ReadConfigFile(const std::string& path);

}  // namespace attendant::server
