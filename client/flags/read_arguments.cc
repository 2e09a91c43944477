#include "client/flags/read_arguments.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/flags/help.h"

namespace attendant::client {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Levenshtein distance: the fewest letters to insert, remove or replace.
size_t SpellingDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Returns "; did you mean <nearest>?", or an empty string if none of `names` is similar to `name`.
std::string Suggestion(const std::string& name, const std::vector<std::string>& names) {
  const size_t letters = name.size() - std::min(name.find_first_not_of('-'), name.size());
  std::string nearest;
  size_t least = std::min<size_t>(3, letters / 2) + 1;
  for (const std::string& known : names) {
    const size_t distance = SpellingDistance(known, name);
    if (distance < least) nearest = known;
    least = std::min(least, distance);
  }
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

absl::Status UnknownFlag(const ProgramTable& program, const CommandTable* command,
                         const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const Flag& flag : program.common) names.push_back(flag.name);
  if (command != nullptr) {
    for (const Flag& flag : command->flags) {
      if (flag.name == name) return Wrong(name, ": expected after the command ", command->name);
      names.push_back(flag.name);
    }
  }
  return Wrong("unknown flag ", name, Suggestion(name, names));
}

absl::Status UnknownArguments(const ProgramTable& program, const ParsedArguments& parsed) {
  const std::string& first = parsed.unknown.front();
  if (parsed.command == nullptr && !absl::StartsWith(first, "-")) {
    std::vector<std::string> names;
    for (const CommandTable& command : program.commands) names.push_back(command.name);
    return Wrong("unknown command \"", first, "\"", Suggestion(first, names));
  }
  const absl::Status status =
      absl::StartsWith(first, "-")
          ? UnknownFlag(program, parsed.command, first)
          : Wrong("unexpected argument \"", first, "\"", parsed.command->instead);
  if (parsed.unknown.size() == 1) return status;
  return Wrong(status.message(), "; unexpected after it: ",
               absl::StrJoin(parsed.unknown.begin() + 1, parsed.unknown.end(), " "));
}

absl::Status ReadFlag(const Flag& flag, const std::vector<std::string>& texts) {
  const bool one =
      flag.kind.takes == FlagKind::Takes::kOne || flag.kind.takes == FlagKind::Takes::kMaybeOne;
  if (one && texts.size() > 1) return Wrong(flag.name, ": expected one value; got ", texts.size());
  for (const std::string& text : texts) {
    if (!flag.kind.read(text)) {
      return Wrong(flag.name, ": expected ", flag.kind.expected, "; got \"", text, "\"");
    }
  }
  return absl::OkStatus();
}

absl::Status Missing(const Flag& flag, const std::string& got) {
  const std::string expected = flag.kind.expected.empty() ? Placeholder(flag) : flag.kind.expected;
  const std::string subject = flag.name == expected ? "" : absl::StrCat(flag.name, ": ");
  return Wrong(subject, "expected ", expected, "; got ", got);
}

// Returns an error if a flag has another flag's name for its value, which then is missing.
absl::Status CheckNoFlagIsAValue(const Flags& flags, const ParsedArguments& parsed) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) names.push_back(flag.name);
  for (const Flag& flag : flags) {
    const auto given = parsed.texts.find(flag.name);
    if (given == parsed.texts.end() || !absl::StartsWith(flag.name, "-")) continue;
    for (const std::string& text : given->second) {
      const std::string name = text.substr(0, text.find('='));
      const bool known = std::find(names.begin(), names.end(), name) != names.end();
      if (absl::StartsWith(name, "-") && known) return Missing(flag, "the flag " + name);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadFlags(const Flags& flags, const ParsedArguments& parsed) {
  const auto given = [&](const std::string& name) { return parsed.texts.count(name) > 0; };
  for (const Flag& flag : flags) {
    if (flag.name == parsed.without_value || (flag.required && !given(flag.name))) {
      return Missing(flag, "nothing");
    }
    if (!given(flag.name)) continue;
    absl::Status status = ReadFlag(flag, parsed.texts.at(flag.name));
    if (!status.ok()) return status;
    for (const std::string& other : NamesIn(flag.needs)) {
      if (!given(other)) return Wrong(flag.name, ": requires ", other);
    }
    for (const std::string& other : NamesIn(flag.excludes)) {
      if (given(other)) return Wrong(flag.name, ": cannot be combined with ", other);
    }
  }
  return absl::OkStatus();
}

absl::Status Read(const ProgramTable& program, const ParsedArguments& parsed) {
  Flags all = program.common;
  if (parsed.command != nullptr) {
    all.insert(all.end(), parsed.command->flags.begin(), parsed.command->flags.end());
  }
  absl::Status status = ReadFlags(program.common, parsed);
  if (status.ok()) status = CheckNoFlagIsAValue(all, parsed);
  if (!status.ok()) return status;
  if (!parsed.unknown.empty()) return UnknownArguments(program, parsed);
  if (parsed.command == nullptr) return Wrong("expected a command; got none");
  return ReadFlags(parsed.command->flags, parsed);
}

}  // namespace

absl::Status ReadArguments(const ProgramTable& program, const ParsedArguments& parsed) {
  absl::Status status = Read(program, parsed);
  if (status.ok()) return status;
  const char* command = parsed.command == nullptr ? "" : parsed.command->name;
  const char* space = parsed.command == nullptr ? "" : " ";
  return Wrong(status.message(), "; see attendant-client ", command, space, "--help");
}

}  // namespace attendant::client
