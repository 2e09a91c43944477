// The table of all settings, from which the flags, the variables, the config file, the help and the
// list in the log are derived.
#pragma once

#include <string>
#include <vector>

#include "server/settings/setting_kinds.h"

namespace attendant::server {

struct SettingRow {
  std::string group;        // heading in the help; the rows of a group are adjacent
  std::string name;         // "max-batch-tokens"
  std::string placeholder;  // "TOKENS"
  std::string help;         // one sentence
  SettingKind kind;
};

const std::vector<SettingRow>& SettingsTable();

// Returns the variable of a setting: "ATTENDANT_MAX_BATCH_TOKENS" for "max-batch-tokens".
std::string VariableName(const std::string& setting);

// Returns the text of --help.
std::string HelpText();

}  // namespace attendant::server
