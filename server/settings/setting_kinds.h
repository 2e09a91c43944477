// The kinds of settings. A kind reads a setting from text, checks its bounds and shows its value.
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
  // Reads the texts, at least one, that one source gives for the setting. Returns INVALID_ARGUMENT
  // with what was expected and what was found, without the name of the setting.
  std::function<absl::Status(const std::vector<std::string>& texts, Settings& settings)> read;
  // Returns the value as a text that `read` accepts.
  std::function<std::string(const Settings& settings)> show;
  std::vector<std::string> choices = {};  // the only texts allowed; empty: `read` decides
  std::string alone = {};  // what a flag without a value stands for; empty: it needs one
};

// Numeric kinds accept values in [least, most]. If a source gives several texts, all of these kinds
// use the last one.
SettingKind IntegerKind(int Settings::*member, int least, int most);
SettingKind IntegerKind(int64_t Settings::*member, int64_t least, int64_t most);
SettingKind BytesKind(int64_t Settings::*member, int64_t least, int64_t most);
SettingKind DurationKind(absl::Duration Settings::*member, absl::Duration least,
                         absl::Duration most);
SettingKind TextKind(std::string Settings::*member);
// "on" or "off"; a flag without a value is "on".
SettingKind SwitchKind(bool Settings::*member);
// An IP address, the name of a host, or unix:PATH; not an address with a port, as HOST:PORT and
// [ADDRESS]:PORT are.
SettingKind AddressKind(std::string Settings::*member, bool may_be_empty);

// Networks, separated by commas; or none.
SettingKind NetworksKind(std::vector<Network> Settings::*member);

// The kind of --model, NAME=SOURCE[,key=value...]. Every text adds models, and `;` separates
// several models in one text.
SettingKind ModelsKind();

// The kind of --alias, NAME=MODEL, and of --cors-origin. Every text adds some, and `;` separates
// several in one text.
SettingKind AliasesKind();
SettingKind OriginsKind(std::vector<std::string> Settings::*member);

// Parses a whole number of bytes with an optional unit KiB, MiB, GiB or TiB: "1024" or "512MiB".
absl::StatusOr<int64_t> ParseBytes(const std::string& text);
// Returns the shortest exact text that ParseBytes reads.
std::string FormatBytes(int64_t bytes);

// Returns INVALID_ARGUMENT with the message `expected <allowed>, got "<text>"`.
absl::Status Unexpected(const std::string& allowed, const std::string& text);

// Makes a kind from a function that reads one text and returns false if the text is not allowed. If
// a source gives several texts, the last one is read.
SettingKind OneTextKind(std::string allowed,
                        std::function<bool(const std::string&, Settings&)> read,
                        std::function<std::string(const Settings&)> show);

// A kind whose value is one of a few words.
template <typename T>
SettingKind ChoiceKind(T Settings::*member, const std::vector<Named<T>>& choices) {
  std::string allowed = "one of";
  std::vector<std::string> names;
  for (const Named<T>& choice : choices) {
    names.push_back(choice.name);
    allowed += " " + names.back();
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
