#include "client/flags/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace attendant::client {
namespace {

using Takes = FlagKind::Takes;

constexpr size_t kCommandColumns = 18;
constexpr size_t kFlagColumns = 26;
constexpr char kExitCodes[] =
    "\nExit codes\n"
    "  0  success; health: the server is serving\n"
    "  1  the server refused the request or returned an error\n"
    "  2  bad usage, or a file that cannot be read or written\n"
    "  3  the server cannot be reached or is not serving\n"
    "  4  the load test had errors, missed --require, measured\n"
    "     nothing, was interrupted, or found no rate for\n"
    "     --find-rate\n";

bool IsArgument(const Flag& flag) { return !absl::StartsWith(flag.name, "-"); }

// Appends the words of a text, in lines of at most `columns` that begin with `indent` spaces. The
// last line of `out` already has `used` columns.
void AppendWrapped(const std::string& text, size_t indent, size_t used, size_t columns,
                   std::string& out) {
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (used > indent && used + 1 + word.size() > columns) {
      absl::StrAppend(&out, "\n");
      used = 0;
    }
    const size_t gap = used > indent ? 1 : indent - used;
    absl::StrAppend(&out, std::string(gap, ' '), word);
    used += gap + word.size();
  }
  absl::StrAppend(&out, "\n");
}

// Appends a name, and a text that begins at column `indent`; in the next line if the name is long.
void AppendRow(const std::string& name, const std::string& text, size_t indent, size_t columns,
               std::string& out) {
  absl::StrAppend(&out, "  ", name);
  size_t used = 2 + name.size();
  if (used + 2 > indent) {
    absl::StrAppend(&out, "\n");
    used = 0;
  }
  AppendWrapped(text, indent, used, columns, out);
}

// Returns the flag as it is written: "--layer INDEX", "--pooled [POOLING]", "FILE...".
std::string Form(const Flag& flag) {
  const std::string placeholder = Placeholder(flag);
  if (IsArgument(flag)) {
    return flag.kind.takes == Takes::kList ? absl::StrCat(placeholder, "...") : placeholder;
  }
  std::string name = flag.name;
  if (name == "--help") name = "-h, --help";
  if (placeholder.empty()) return name;
  const bool optional = flag.kind.takes == Takes::kMaybeOne;
  return optional ? absl::StrCat(name, " [", placeholder, "]")
                  : absl::StrCat(name, " ", placeholder);
}

std::string HelpText(const Flag& flag) {
  std::vector<std::string> notes;
  const bool has_choices = !flag.kind.choices.empty();
  if (has_choices && (*flag.placeholder != '\0' || IsArgument(flag))) {
    notes.push_back(flag.kind.expected);
  }
  if (!flag.kind.bounds.empty()) notes.push_back(flag.kind.bounds);
  if (!flag.kind.initial.empty()) notes.push_back(absl::StrCat("default: ", flag.kind.initial));
  if (flag.kind.takes == Takes::kRepeated) notes.push_back("repeatable");
  if (flag.required) notes.push_back("required");
  const std::string needs = absl::StrJoin(NamesIn(flag.needs), ", ");
  if (!needs.empty()) notes.push_back(absl::StrCat("requires ", needs));
  const std::string excludes = absl::StrJoin(NamesIn(flag.excludes), ", ");
  if (!excludes.empty()) notes.push_back(absl::StrCat("not with ", excludes));
  if (notes.empty()) return flag.help;
  return absl::StrCat(flag.help, " (", absl::StrJoin(notes, "; "), ")");
}

// Appends the flags of each group together, in the order in which the groups begin.
void AppendFlags(const Flags& flags, size_t columns, std::string& out) {
  std::vector<std::string> groups;
  for (const Flag& flag : flags) {
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
  }
  for (const std::string& group : groups) {
    absl::StrAppend(&out, "\n", group, "\n");
    for (const Flag& flag : flags) {
      if (flag.group == group) AppendRow(Form(flag), HelpText(flag), kFlagColumns, columns, out);
    }
  }
}

std::string Usage(const CommandTable& command) {
  std::string usage = absl::StrCat("Usage: attendant-client ", command.name);
  for (const Flag& flag : command.flags) {
    if (flag.required) absl::StrAppend(&usage, " ", Form(flag));
    if (!flag.required && IsArgument(flag)) absl::StrAppend(&usage, " [", Form(flag), "]");
  }
  return absl::StrCat(usage, " [FLAGS]\n\n");
}

}  // namespace

std::string ProgramHelp(const ProgramTable& program, size_t columns) {
  std::string text =
      "Usage: attendant-client COMMAND [FLAGS]\n"
      "       attendant-client COMMAND --help\n\n"
      "Calls an attendant-server over gRPC, from the command line.\n";
  std::string heading;
  for (const CommandTable& command : program.commands) {
    if (command.heading != heading) absl::StrAppend(&text, "\n", command.heading, "\n");
    heading = command.heading;
    AppendRow(command.name, command.summary, kCommandColumns, columns, text);
  }
  AppendFlags(program.common, columns, text);
  return absl::StrCat(
      text, kExitCodes,
      "\nExample\n"
      "  attendant-client attend --model worked-example --values \"1,0,1,0;0,2,0,2;1,1,1,1\"\n");
}

std::string CommandHelp(const ProgramTable& program, const CommandTable& command, size_t columns) {
  std::string text = Usage(command);
  AppendWrapped(absl::StrCat(command.summary, ". ", command.details), 0, 0, columns, text);
  Flags flags = command.flags;
  flags.insert(flags.end(), program.common.begin(), program.common.end());
  AppendFlags(flags, columns, text);
  absl::StrAppend(&text, kExitCodes, "\nExample\n");
  for (const absl::string_view line : absl::StrSplit(command.examples, '\n')) {
    absl::StrAppend(&text, "  ", line, "\n");
  }
  return text;
}

size_t HelpColumns(int descriptor) {
  if (isatty(descriptor) == 0) return 80;
  size_t columns = 0;
  const char* variable = std::getenv("COLUMNS");
  if (variable == nullptr || !absl::SimpleAtoi(variable, &columns)) {
    winsize size = {};
    columns = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }
  return std::clamp<size_t>(columns, 40, 100);
}

std::string Placeholder(const Flag& flag) {
  if (IsArgument(flag)) return flag.name;
  return *flag.placeholder == '\0' ? absl::StrJoin(flag.kind.choices, "|") : flag.placeholder;
}

}  // namespace attendant::client
