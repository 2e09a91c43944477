#include "server/settings/settings_sources.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/spelling.h"
#include "server/settings/settings_table.h"

namespace attendant::server {
namespace {

// Returns `; did you mean <nearest>?`, or an empty string if none of `names` is similar to `name`.
std::string Suggestion(const std::string& name, const std::vector<std::string>& names) {
  const auto nearest =
      std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return SpellingDistance(a, name) < SpellingDistance(b, name);
      });
  if (SpellingDistance(*nearest, name) > std::min<size_t>(3, name.size() / 2)) return "";
  return absl::StrCat("; did you mean ", *nearest, "?");
}

std::vector<std::string> SettingNames() {
  std::vector<std::string> names;
  for (const SettingRow& row : SettingsTable()) names.push_back(row.name);
  return names;
}

std::vector<std::string> KnownNames(std::string (*format)(const std::string&)) {
  std::vector<std::string> names = {format("config")};
  for (const std::string& name : SettingNames()) names.push_back(format(name));
  return names;
}

std::string FlagName(const std::string& setting) { return absl::StrCat("--", setting); }

absl::Status UnknownArgument(const std::string& argument) {
  if (!absl::StartsWith(argument, "-")) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument \"", argument, "\"; see --help"));
  }
  const std::string name = argument.substr(0, argument.find('='));
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", name, Suggestion(name, KnownNames(FlagName)), "; see --help"));
}

// Returns true if the variable looks like one of those that Kubernetes sets in every pod of a
// namespace for a Service named "attendant".
bool IsServiceLink(const std::string& name, const std::string& value) {
  return absl::StartsWith(name, "ATTENDANT_SERVICE_") ||
         absl::StartsWith(name, "ATTENDANT_PORT_") || absl::StartsWith(value, "tcp://");
}

absl::Status UnknownVariable(const std::string& name, const std::string& value) {
  if (IsServiceLink(name, value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown variable ", name, " (\"", value,
        "\"); if Kubernetes set it for a Service, set enableServiceLinks: false in the pod"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown variable ", name, Suggestion(name, KnownNames(VariableName))));
}

// Returns the arguments in reverse, as the parser expects, with a value for each flag that may omit
// its value and does.
std::vector<std::string> WithValues(const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed;
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
    std::string text = *argument;
    for (const SettingRow& row : SettingsTable()) {
      const bool is_last = reversed.empty() || absl::StartsWith(reversed.back(), "-");
      if (row.kind.implied.empty() || text != FlagName(row.name) || !is_last) continue;
      absl::StrAppend(&text, "=", row.kind.implied);
    }
    reversed.push_back(std::move(text));
  }
  return reversed;
}

std::string WithoutQuotes(absl::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '"' || text.front() == '\'');
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

// Checks the flags that select the program's action.
absl::Status CheckActions(const CommandLine& line) {
  if (line.completion && *line.completion != "bash") {
    return absl::InvalidArgumentError(
        absl::StrCat("--completion: expected bash; got \"", *line.completion, "\"; see --help"));
  }
  if ((line.json || line.ranks) && !line.describe) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.json ? "--json" : "--ranks", ": requires --describe; see --help"));
  }
  if (line.pull && line.describe) {
    return absl::InvalidArgumentError("--pull: cannot be combined with --describe; see --help");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ReadFlags(const std::vector<std::string>& arguments) {
  CLI::App app;
  app.allow_extras();
  app.set_help_flag();
  CommandLine line;
  app.add_flag("-h,--help", line.help);
  app.add_flag("--version", line.version);
  app.add_option_function<std::string>(
      "--completion", [&line](const std::string& shell) { line.completion = shell; });
  app.add_option("--config", line.config_file);
  app.add_option_function<std::string>(
      "--pull", [&line](const std::string& repository) { line.pull = repository; });
  app.add_option_function<std::string>(
      "--describe", [&line](const std::string& source) { line.describe = source; });
  app.add_flag("--json", line.json);
  app.add_flag("--ranks", line.ranks);
  std::map<std::string, CLI::Option*> options;
  for (const SettingRow& row : SettingsTable()) {
    options[row.name] =
        app.add_option(FlagName(row.name))->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  try {
    app.parse(WithValues(arguments));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string flag =
        std::string(error.what()).substr(0, std::string(error.what()).find(':'));
    return absl::InvalidArgumentError(absl::StrCat(flag, ": expected a value; see --help"));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrReplaceAll(error.what(), {{"\n", " "}}));
  }
  if (line.help || line.version) return line;
  for (const std::string& argument : app.remaining()) return UnknownArgument(argument);
  if (absl::Status status = CheckActions(line); !status.ok()) return status;
  for (const auto& [name, option] : options) {
    if (option->count() == 0) continue;
    line.flags.texts[name] = option->results();
    line.flags.labels[name] = FlagName(name);
  }
  return line;
}

absl::StatusOr<SettingsSource> ReadVariables(
    const std::vector<std::pair<std::string, std::string>>& environment, std::string& config_file) {
  std::map<std::string, std::string> settings_by_variable;
  for (const SettingRow& row : SettingsTable())
    settings_by_variable[VariableName(row.name)] = row.name;
  SettingsSource source;
  for (const auto& [name, value] : environment) {
    if (!absl::StartsWith(name, "ATTENDANT_")) continue;
    if (name == VariableName("config")) {
      if (config_file.empty()) config_file = value;
      continue;
    }
    const auto setting = settings_by_variable.find(name);
    if (setting == settings_by_variable.end() || IsServiceLink(name, value))
      return UnknownVariable(name, value);
    source.texts[setting->second] = {value};
    source.labels[setting->second] = name;
  }
  return source;
}

absl::StatusOr<SettingsSource> ReadConfigFile(const std::string& path) {
  std::ifstream file(path);
  const auto refusal = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("config file ", path, ": ", why...));
  };
  if (!file || std::filesystem::is_directory(path)) return refusal("cannot be read");
  SettingsSource source;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text[0] == '#' || text[0] == ';') continue;
    if (text[0] == '[') return refusal("sections are not supported");
    if (!absl::StrContains(text, '=')) {
      return refusal("line ", number, ": expected NAME = VALUE; got \"", text, "\"");
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(parts.first));
    const auto known = [&](const SettingRow& row) { return row.name == name; };
    if (std::none_of(SettingsTable().begin(), SettingsTable().end(), known)) {
      return refusal("unknown setting \"", name, "\"", Suggestion(name, SettingNames()));
    }
    source.texts[name].push_back(WithoutQuotes(absl::StripAsciiWhitespace(parts.second)));
    source.labels[name] = absl::StrCat("config file ", path, ": ", name);
  }
  return source;
}

}  // namespace attendant::server
