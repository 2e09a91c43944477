// The sources of settings: command line, environment and config file. Each is read as names and
// texts, which are parsed later.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::server {

struct SettingsSource {
  // The values of each setting, in the order of the source, by setting name.
  std::map<std::string, std::vector<std::string>> texts;
  // The names of settings in errors, such as "--port", by setting name.
  std::map<std::string, std::string> labels;
};

// Settings on the command line, and flags that select the program's action.
struct CommandLine {
  SettingsSource flags;
  std::string config_file;  // --config; or empty
  bool help = false;
  bool version = false;
  std::optional<std::string> completion;  // the name of a shell
  std::optional<std::string> pull;        // ORG/REPO[@REVISION]
  std::optional<std::string> describe;    // SOURCE[,key=value…]
  bool json = false;
  bool ranks = false;
};

// Return INVALID_ARGUMENT if a source is malformed or has an unknown name; the message then
// suggests a similar name, if any.
absl::StatusOr<CommandLine> ReadFlags(const std::vector<std::string>& arguments);
// Stores the value of ATTENDANT_CONFIG in `config_file` unless it is set.
absl::StatusOr<SettingsSource> ReadVariables(
    const std::vector<std::pair<std::string, std::string>>& environment, std::string& config_file);
absl::StatusOr<SettingsSource> ReadConfigFile(const std::string& path);

}  // namespace attendant::server
