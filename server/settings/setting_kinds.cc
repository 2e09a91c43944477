#include "server/settings/setting_kinds.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/base/checked_size.h"
#include "server/settings/model_name.h"
#include "server/settings/model_setting.h"

namespace attendant::server {
namespace {

constexpr Named<int64_t> kByteUnits[] = {{"TiB", int64_t{1} << 40},
                                         {"GiB", int64_t{1} << 30},
                                         {"MiB", int64_t{1} << 20},
                                         {"KiB", int64_t{1} << 10},
                                         {"", 1}};

// Accepts only digits after an optional minus. absl::SimpleAtoi would accept spaces and a plus,
// too.
std::optional<int64_t> ParseInteger(const std::string& text) {
  int64_t value;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

template <typename T>
SettingKind BoundedInteger(T Settings::*member, T least, T most) {
  return OneTextKind(
      absl::StrCat("an integer from ", least, " to ", most),
      [=](const std::string& text, Settings& settings) {
        const std::optional<int64_t> value = ParseInteger(text);
        if (!value || *value < least || *value > most) return false;
        settings.*member = static_cast<T>(*value);
        return true;
      },
      [=](const Settings& settings) { return absl::StrCat(settings.*member); });
}

// The parts of all texts between semicolons, without spaces around them.
std::vector<std::string> SplitTexts(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    for (absl::string_view part : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
      parts.emplace_back(absl::StripAsciiWhitespace(part));
    }
  }
  return parts;
}

}  // namespace

absl::Status Unexpected(const std::string& allowed, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", allowed, "; got \"", text, "\""));
}

SettingKind OneTextKind(std::string allowed,
                        std::function<bool(const std::string&, Settings&)> read,
                        std::function<std::string(const Settings&)> show) {
  auto read_last = [allowed, read](const std::vector<std::string>& texts, Settings& settings) {
    return read(texts.back(), settings) ? absl::OkStatus() : Unexpected(allowed, texts.back());
  };
  return {allowed, read_last, show};
}

SettingKind IntegerKind(int Settings::*member, int least, int most) {
  return BoundedInteger(member, least, most);
}

SettingKind IntegerKind(int64_t Settings::*member, int64_t least, int64_t most) {
  return BoundedInteger(member, least, most);
}

SettingKind BytesKind(int64_t Settings::*member, int64_t least, int64_t most) {
  return OneTextKind(
      absl::StrCat("bytes from ", FormatBytes(least), " to ", FormatBytes(most),
                   ", such as 1048576 or 512MiB"),
      [=](const std::string& text, Settings& settings) {
        const absl::StatusOr<int64_t> value = ParseBytes(text);
        if (!value.ok() || *value < least || *value > most) return false;
        settings.*member = *value;
        return true;
      },
      [=](const Settings& settings) { return FormatBytes(settings.*member); });
}

SettingKind DurationKind(absl::Duration Settings::*member, absl::Duration least,
                         absl::Duration most) {
  return OneTextKind(
      absl::StrCat("a duration from ", absl::FormatDuration(least), " to ",
                   absl::FormatDuration(most), ", such as 250ms, 10s or 1m"),
      [=](const std::string& text, Settings& settings) {
        absl::Duration value;
        if (!absl::ParseDuration(text, &value) || value < least || value > most) return false;
        settings.*member = value;
        return true;
      },
      [=](const Settings& settings) { return absl::FormatDuration(settings.*member); });
}

SettingKind TextKind(std::string Settings::*member) {
  return OneTextKind(
      "a string",
      [=](const std::string& text, Settings& settings) {
        settings.*member = text;
        return true;
      },
      [=](const Settings& settings) { return settings.*member; });
}

SettingKind SwitchKind(bool Settings::*member) {
  SettingKind kind = ChoiceKind(member, std::vector<Named<bool>>{{"on", true}, {"off", false}});
  kind.implied = "on";
  return kind;
}

SettingKind AddressKind(std::string Settings::*member, bool is_for_http) {
  return OneTextKind(
      "an address without a port, such as 127.0.0.1 or ::1",
      [=](const std::string& text, Settings& settings) {
        const bool is_path = absl::StartsWith(text, "unix:") && !is_for_http;
        const bool has_port =
            absl::StartsWith(text, "[") || std::count(text.begin(), text.end(), ':') == 1;
        settings.*member = text;
        return (is_path || !has_port) && (is_for_http || !text.empty());
      },
      [=](const Settings& settings) { return settings.*member; });
}

SettingKind NetworksKind(std::vector<Network> Settings::*member) {
  return OneTextKind(
      "networks such as 10.0.0.0/8,fd00::/8",
      [=](const std::string& text, Settings& settings) {
        std::vector<Network> networks;
        for (const std::string& one :
             std::vector<std::string>(absl::StrSplit(text, ',', absl::SkipEmpty()))) {
          const std::optional<Network> network = ParseNetwork(one);
          if (!network) return false;
          networks.push_back(*network);
        }
        settings.*member = std::move(networks);
        return true;
      },
      [=](const Settings& settings) {
        return absl::StrJoin(settings.*member, ",", [](std::string* out, const Network& network) {
          absl::StrAppend(out, FormatNetwork(network));
        });
      });
}

SettingKind AliasesKind() {
  const std::string allowed = absl::StrCat("NAME=MODEL, where NAME is ", kModelNameRule);
  auto read = [allowed](const std::vector<std::string>& texts, Settings& settings) {
    settings.aliases.clear();
    for (const std::string& one : SplitTexts(texts)) {
      const size_t equals = one.find('=');
      if (equals == std::string::npos || equals + 1 == one.size() ||
          !IsModelName(one.substr(0, equals))) {
        return Unexpected(allowed, one);
      }
      const auto [known, is_new] =
          settings.aliases.emplace(one.substr(0, equals), one.substr(equals + 1));
      if (!is_new) {
        return absl::InvalidArgumentError(
            absl::StrCat("two aliases are named \"", known->first, "\""));
      }
    }
    return absl::OkStatus();
  };
  auto show = [](const Settings& settings) {
    return absl::StrJoin(settings.aliases, ";", absl::PairFormatter("="));
  };
  return {"NAME=MODEL", read, show};
}

SettingKind OriginsKind(std::vector<std::string> Settings::*member) {
  const std::string allowed = "* or an origin such as https://app.example.com, without a path";
  auto read = [member, allowed](const std::vector<std::string>& texts, Settings& settings) {
    (settings.*member).clear();
    for (const std::string& one : SplitTexts(texts)) {
      const size_t scheme = one.find("://");
      const bool is_origin = scheme != std::string::npos && scheme > 0 && scheme + 3 < one.size() &&
                             one.find_first_of("/ \r\n,", scheme + 3) == std::string::npos;
      if (one != "*" && !is_origin) return Unexpected(allowed, one);
      (settings.*member).push_back(absl::AsciiStrToLower(one));  // as browsers send it
    }
    return absl::OkStatus();
  };
  auto show = [member](const Settings& settings) { return absl::StrJoin(settings.*member, ";"); };
  return {allowed, read, show};
}

SettingKind ModelsKind() {
  auto read = [](const std::vector<std::string>& texts, Settings& settings) {
    settings.models.clear();
    for (const std::string& one : SplitTexts(texts)) {
      absl::StatusOr<ModelSetting> model = ParseModelSetting(one);
      if (!model.ok()) return model.status();
      for (const ModelSetting& other : settings.models) {
        if (other.name == model->name) {
          return absl::InvalidArgumentError(
              absl::StrCat("two models are named \"", other.name, "\""));
        }
      }
      settings.models.push_back(*std::move(model));
    }
    return absl::OkStatus();
  };
  auto show = [](const Settings& settings) {
    return absl::StrJoin(settings.models, ";", [](std::string* out, const ModelSetting& model) {
      absl::StrAppend(out, FormatModelSetting(model));
    });
  };
  return {"NAME=SOURCE[,key=value...]", read, show};
}

absl::StatusOr<int64_t> ParseBytes(const std::string& text) {
  const absl::Status refusal = Unexpected("whole bytes such as 1048576 or 512MiB", text);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<int64_t> count = ParseInteger(text.substr(0, digits));
  if (!count) return refusal;
  const std::optional<int64_t> unit = ValueIn(kByteUnits, text.substr(digits));
  if (!unit) return refusal;
  const CheckedSize bytes = CheckedSize(*count) * *unit;
  if (!bytes.ok()) return refusal;
  return bytes.value();
}

std::string FormatBytes(int64_t bytes) {
  for (const auto& [suffix, unit] : kByteUnits) {
    if (bytes != 0 && bytes % unit == 0) return absl::StrCat(bytes / unit, suffix);
  }
  return absl::StrCat(bytes);
}

}  // namespace attendant::server
