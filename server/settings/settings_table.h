// The settings table, which defines the flags, variables, config file keys, help text and log
// listing.
#pragma once

#include <string>
#include <vector>

#include "server/settings/setting_kinds.h"

namespace attendant::server {

struct SettingRow {
  std::string group;        // heading in the help; rows of a group are adjacent
  std::string name;         // "max-batch-tokens"
  std::string placeholder;  // "TOKENS"
  std::string help;         // help text
  SettingKind kind;
};

const std::vector<SettingRow>& SettingsTable();

// Returns the variable of a setting: "ATTENDANT_MAX_BATCH_TOKENS" for "max-batch-tokens".
std::string VariableName(const std::string& setting);

// Returns the text of --help.
std::string HelpText();

// Returns a bash script that completes the flags.
std::string BashCompletion();

}  // namespace attendant::server
