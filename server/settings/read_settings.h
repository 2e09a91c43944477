// Reader of the settings from the command line, the environment and a config file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// Flags that are only valid together with --describe.
struct DescribeOptions {
  bool json = false;
  bool ranks = false;  // whether to compute the ranks of W_Q^T W_K
};

// The action that the command line requests, and the settings for it.
struct SettingsRequest {
  enum class Kind { kServe, kPull, kDescribe, kHelp, kVersion, kCompletion } kind = Kind::kServe;
  // For kServe, kPull and kDescribe. For the latter two, `models` holds only the model to be pulled
  // or described, whose name is its source.
  Settings settings;
  DescribeOptions describe;
  std::string text;  // for the other kinds, the text to print
};

// Reads the settings from `arguments` (argv without the program's name), from the ATTENDANT_*
// variables in `environment`, and from the ini file that --config names (`port = 8001`). If several
// of these sources name a setting, the first of them in this order wins. If none names a model, the
// settings get `worked-example`, under that name.
//
// Returns INVALID_ARGUMENT if a name in any of the sources is unknown, including that of an
// ATTENDANT_* variable, or if any value is invalid, even one that another source overrides. The
// message is one line with the setting, the text that was found and what is allowed.
absl::StatusOr<SettingsRequest> ReadSettings(
    const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& environment);

// Returns one line "name = value" per setting, with the values in effect, for the log.
std::vector<std::string> DescribeSettings(const Settings& settings);

}  // namespace attendant::server
