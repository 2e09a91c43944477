// The kinds of flags. Each reads its value into a target, which must outlive the kind.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/flags/flag.h"

namespace attendant::client {

// Without a value in the target, `initial` says in the help what happens without the flag.
FlagKind TextKind(std::string& target, const std::string& initial = "");
FlagKind TextsKind(std::vector<std::string>& target);

// A duration such as 250ms, 30s or 2m; a bare number means seconds. Not negative.
FlagKind DurationKind(absl::Duration& target);
FlagKind DurationKind(std::optional<absl::Duration>& target, absl::Duration initial);

// A real number of least..most.
FlagKind RealKind(double& target, double least, double most);

// A switch that sets the target to a value.
template <typename T>
FlagKind SetKind(T& target, T value) {
  return {.takes = FlagKind::Takes::kNothing,
          .expected = "no value",
          .read = [&target, value](const std::string& text) {
            if (text == "true") target = value;
            return text == "true" || text == "false";  // --json=false
          }};
}
inline FlagKind SwitchKind(bool& target) { return SetKind(target, true); }

// An integer of least..most. The target's initial value is the default if it is in the range.
template <typename T>
FlagKind IntegerKind(T& target, T least = std::numeric_limits<T>::min(),
                     T most = std::numeric_limits<T>::max()) {
  const std::string bounds = most == std::numeric_limits<T>::max()
                                 ? absl::StrCat("at least ", least)
                                 : absl::StrCat(least, "..", most);
  const bool bounded = least > 0 || most < std::numeric_limits<T>::max();
  return {.expected = absl::StrCat("an integer of ", bounds),
          .bounds = bounded ? bounds : "",
          .initial = target >= least && target <= most ? absl::StrCat(target) : "",
          .read = [&target, least, most](const std::string& text) {
            T value = 0;
            if (!absl::SimpleAtoi(text, &value) || value < least || value > most) return false;
            target = value;
            return true;
          }};
}

inline bool ParseNumber(absl::string_view text, float& value) {
  return absl::SimpleAtof(text, &value);
}
template <typename T>
bool ParseNumber(absl::string_view text, T& value) {
  return absl::SimpleAtoi(text, &value);
}

// Numbers, split at commas.
template <typename T>
FlagKind ListKind(std::vector<T>& target) {
  return {.takes = FlagKind::Takes::kList,
          .expected = absl::StrCat(std::numeric_limits<T>::is_integer ? "integers" : "numbers",
                                   " separated by commas"),
          .read = [&target](const std::string& text) {
            for (const absl::string_view item : absl::StrSplit(text, ',')) {
              if (!ParseNumber(item, target.emplace_back())) return false;
            }
            return true;
          }};
}

// One of a few words. The one for the value that the target holds is the default. Target is T or
// std::optional<T>.
template <typename T, typename Target>
FlagKind ChoiceKind(Target& target, std::vector<std::pair<std::string, T>> choices) {
  FlagKind kind;
  for (const auto& [name, value] : choices) {
    if (target == value) kind.initial = name;
    kind.choices.push_back(name);
  }
  kind.expected = absl::StrCat("one of ", absl::StrJoin(kind.choices, ", "));
  kind.read = [&target, choices = std::move(choices)](const std::string& text) {
    for (const auto& [name, value] : choices) {
      if (name != text) continue;
      target = value;
      return true;
    }
    return false;
  };
  return kind;
}

}  // namespace attendant::client
