// The three sources of settings: command line, environment and config file. Each is read into names
// and texts; the texts are parsed later.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::server {

struct SettingsSource {
  // The texts of each setting in the order in which the source gives them, by name of the setting.
  std::map<std::string, std::vector<std::string>> texts;
  // The names that errors use for the settings, such as "--port", by name of the setting.
  std::map<std::string, std::string> labels;
};

// The settings on the command line, and the flags that are not settings but choose what the program
// does.
struct CommandLine {
  SettingsSource flags;
  std::string config_file;  // --config; empty: none
  bool help = false;
  bool version = false;
  std::optional<std::string> completion;  // the name of a shell
  std::optional<std::string> pull;        // ORG/REPO[@REVISION]
  std::optional<std::string> describe;    // SOURCE[,key=value…]
  bool json = false;
  bool ranks = false;
};

// Each of these functions returns INVALID_ARGUMENT if its source is malformed or uses a name that
// is not that of a setting. In that case the message suggests a similar name, if there is one.
absl::StatusOr<CommandLine> ReadFlags(const std::vector<std::string>& arguments);
// Stores the value of ATTENDANT_CONFIG in `config_file`, unless that is set already.
absl::StatusOr<SettingsSource> ReadVariables(
    const std::vector<std::pair<std::string, std::string>>& environment, std::string& config_file);
absl::StatusOr<SettingsSource> ReadConfigFile(const std::string& path);

}  // namespace attendant::server
