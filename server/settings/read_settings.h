// From the command line, the environment and a file to settings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings/settings.h"

namespace attendant::server {

// What goes with --describe.
struct DescribeOptions {
  bool json = false;
  bool ranks = false;  // of W_Q^T W_K
};

struct SettingsRequest {
  enum class Kind { kServe, kDescribe, kHelp, kVersion } kind = Kind::kServe;
  Settings settings;  // of --describe: with that one model, named as its source
  DescribeOptions describe;
  std::string text;  // of --help and --version
};

// Reads the arguments (argv without the program), then ATTENDANT_* variables, then the file of
// --config FILE (ini: `port = 8001`); the first that names a setting wins. An unknown name anywhere
// (ATTENDANT_* included), or a bad value anywhere, even one that another source overrides, is
// INVALID_ARGUMENT: one line with the setting, what came and what is allowed. Without a model:
// `worked-example` under its own name.
absl::StatusOr<SettingsRequest> ReadSettings(
    const std::vector<std::string>& arguments,
    const std::vector<std::pair<std::string, std::string>>& environment);

// Effective values, one "name = value" a setting, as printed at start.
std::vector<std::string> DescribeSettings(const Settings& settings);

}  // namespace attendant::server
