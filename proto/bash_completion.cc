#include "proto/bash_completion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace attendant::proto {
namespace {

using Kind = CompletionValue::Kind;

// Finds the command, and the flag whose value is being typed: the previous word, or the word before
// `=` in --flag=value and --flag NAME=VALUE, which bash splits into several words.
constexpr char kBegin[] = R"(@FUNCTION() {
  local word=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD command= flag= flags= words= files= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in @COMMANDS) command=${COMP_WORDS[i]}; break ;; esac
  done
  if [[ $word == = ]]; then word= at=$((at + 1)); fi
  while ((at > 2)) && [[ ${COMP_WORDS[at - 1]} == = ]]; do at=$((at - 2)); done
  flag=${COMP_WORDS[at - 1]}
  if ((at != COMP_CWORD)) && [[ ${COMP_WORDS[at]} == -* ]]; then flag=${COMP_WORDS[at]}; fi
  case $command in
)";

constexpr char kEnd[] = R"(  esac
  if [[ $files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  else
    if [[ $words && $word == -* ]]; then words=$flags; fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  fi
}
complete -F @FUNCTION @PROGRAM
)";

// Returns the names of the flags that satisfy a condition, joined with a separator.
template <typename Condition>
std::string Names(const CompletionCommand& command, const char* separator, Condition fulfils) {
  std::vector<std::string> names;
  for (const CompletionFlag& flag : command.flags) {
    if (fulfils(flag)) names.push_back(flag.name);
  }
  return absl::StrJoin(names, separator);
}

void AppendCase(const std::string& names, const std::string& action, std::string& script) {
  if (!names.empty()) absl::StrAppend(&script, "        ", names, ") ", action, " ;;\n");
}

std::string Words(const CompletionValue& value) {
  return absl::StrCat("words='", absl::StrJoin(value.choices, " "), "'");
}

std::string ArgumentAction(const CompletionValue& argument) {
  const std::string flags = "if [[ $word == -* ]]; then words=$flags; ";
  switch (argument.kind) {
    case Kind::kNone:
      return "words=$flags";
    case Kind::kAny:
      return absl::StrCat(flags, "fi");
    case Kind::kChoice:
      return Words(argument);
    case Kind::kFile:
      return absl::StrCat(flags, "else files=1; fi");
  }
  return "";
}

void AppendCommand(const CompletionCommand& command, std::string& script) {
  const auto named = [&](Kind kind) {
    return Names(command, "|", [&](const CompletionFlag& flag) { return flag.value.kind == kind; });
  };
  const std::string all = Names(command, " ", [](const CompletionFlag&) { return true; });
  absl::StrAppend(&script, "    '", command.name, "')\n      flags='", all, "'\n");
  absl::StrAppend(&script, "      case $flag in\n");
  for (const CompletionFlag& flag : command.flags) {
    if (flag.value.kind == Kind::kChoice) AppendCase(flag.name, Words(flag.value), script);
  }
  AppendCase(named(Kind::kFile), "files=1", script);
  AppendCase(named(Kind::kAny), "", script);
  AppendCase("*", ArgumentAction(command.argument), script);
  absl::StrAppend(&script, "      esac ;;\n");
}

}  // namespace

std::string BashCompletion(const std::string& program,
                           const std::vector<CompletionCommand>& commands) {
  std::vector<std::string> names;
  for (const CompletionCommand& command : commands) {
    names.push_back(command.name.empty() ? "''" : command.name);
  }
  std::string script = absl::StrCat("# Completion of ", program, " by bash.\n", kBegin);
  for (const CompletionCommand& command : commands) AppendCommand(command, script);
  return absl::StrReplaceAll(
      absl::StrCat(script, kEnd),
      {{"@FUNCTION", absl::StrCat("_", absl::StrReplaceAll(program, {{"-", "_"}}))},
       {"@PROGRAM", program},
       {"@COMMANDS", absl::StrJoin(names, "|")}});
}

}  // namespace attendant::proto
