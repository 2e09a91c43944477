// Kinds of settings. A kind parses a setting, checks its bounds and formats its value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/names.h"
#include "server/settings/settings.h"

namespace attendant::server {

struct SettingKind {
  std::string allowed;  // for help and errors, such as "an integer from 0 to 65535"
  // Reads the values, at least one, that one source gives for the setting. Returns INVALID_ARGUMENT
  // with the expected and the given value, but not the setting's name.
  std::function<absl::Status(const std::vector<std::string>& texts, Settings& settings)> read;
  // Returns the value in a form that `read` accepts.
  std::function<std::string(const Settings& settings)> show;
  std::vector<std::string> choices = {};  // the only values allowed; empty: `read` decides
  std::string implied = {};  // the value of a flag without one; empty: a value is required
};

// Numeric kinds accept values in [least, most]. If a source gives several values, all of these
// kinds use the last.
SettingKind IntegerKind(int Settings::*member, int least, int most);
SettingKind IntegerKind(int64_t Settings::*member, int64_t least, int64_t most);
SettingKind BytesKind(int64_t Settings::*member, int64_t least, int64_t most);
SettingKind DurationKind(absl::Duration Settings::*member, absl::Duration least,
                         absl::Duration most);
SettingKind TextKind(std::string Settings::*member);
// "on" or "off"; a flag without a value means "on".
SettingKind SwitchKind(bool Settings::*member);
// An IP address, a host name or unix:PATH, without a port (not HOST:PORT or [ADDRESS]:PORT). If
// `is_for_http`, it may be empty but not unix:PATH.
SettingKind AddressKind(std::string Settings::*member, bool is_for_http);

// Networks, separated by commas; may be empty.
SettingKind NetworksKind(std::vector<Network> Settings::*member);

// The kind of --model, NAME=SOURCE[,key=value...]. Each value adds models, separated by `;`.
SettingKind ModelsKind();

// The kinds of --alias, NAME=MODEL, and of --cors-origin. Each value adds entries, separated by
// `;`.
SettingKind AliasesKind();
SettingKind OriginsKind(std::vector<std::string> Settings::*member);

// Parses a whole number of bytes with an optional unit KiB, MiB, GiB or TiB: "1024" or "512MiB".
absl::StatusOr<int64_t> ParseBytes(const std::string& text);
// Returns the shortest exact text that ParseBytes reads.
std::string FormatBytes(int64_t bytes);

// Returns INVALID_ARGUMENT `expected <allowed>; got "<text>"`.
absl::Status Unexpected(const std::string& allowed, const std::string& text);

// Makes a kind from a function that reads one value and returns false if it is not allowed. If a
// source gives several values, the last one is used.
SettingKind OneTextKind(std::string allowed,
                        std::function<bool(const std::string&, Settings&)> read,
                        std::function<std::string(const Settings&)> show);

// A kind with a fixed set of values.
template <typename T>
SettingKind ChoiceKind(T Settings::*member, const std::vector<Named<T>>& choices) {
  std::string allowed;
  std::vector<std::string> names;
  for (const Named<T>& choice : choices) {
    names.push_back(choice.name);
    allowed += (allowed.empty() ? "one of " : ", ") + names.back();
  }
  SettingKind kind = OneTextKind(
      allowed,
      [member, choices](const std::string& text, Settings& settings) {
        const std::optional<T> value = ValueIn(choices, text);
        if (value) settings.*member = *value;
        return value.has_value();
      },
      [member, choices](const Settings& settings) -> std::string {
        return NameIn(choices, settings.*member);
      });
  kind.choices = std::move(names);
  return kind;
}

}  // namespace attendant::server
