// Reader of the settings from the command line, the environment and a config file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// Flags that require --describe.
struct DescribeOptions {
  bool json = false;
  bool ranks = false;  // compute the ranks of W_Q^T W_K
};

// The action requested by the command line, and its settings.
struct SettingsRequest {
  enum class Kind { kServe, kPull, kDescribe, kHelp, kVersion, kCompletion } kind = Kind::kServe;
  // For kServe, kPull and kDescribe. For the last two, `models` holds only the model to pull or
  // describe, named after its source.
  Settings settings;
  DescribeOptions describe;
  std::string text;  // for the other kinds, the text to print
};

// Reads the settings from `arguments` (argv without the program's name), the ATTENDANT_* variables
// in `environment`, and the ini file named by --config (`port = 8001`). If several sources set a
// value, the first in this order wins. If none sets a model, the server gets `worked-example`,
// under that name.
//
// Returns INVALID_ARGUMENT if any source has an unknown name, including an ATTENDANT_* variable, or
// an invalid value, even an overridden one. The message is one line with the setting, the expected
// value and the given one.
absl::StatusOr<SettingsRequest> ReadSettings(
    const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& environment);

// Returns one line "name = value" per setting, with the effective values, for the log.
std::vector<std::string> DescribeSettings(const Settings& settings);

}  // namespace attendant::server
