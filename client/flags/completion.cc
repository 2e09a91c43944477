#include "client/flags/completion.h"

#include <vector>

#include "absl/strings/match.h"
#include "client/flags/help.h"
#include "proto/bash_completion.h"

namespace attendant::client {
namespace {

using proto::CompletionCommand;
using proto::CompletionValue;
using Kind = CompletionValue::Kind;

CompletionValue ValueOf(const Flag& flag) {
  if (flag.kind.takes == FlagKind::Takes::kNothing) return {};
  if (!flag.kind.choices.empty()) return {Kind::kChoice, flag.kind.choices};
  return {absl::StartsWith(Placeholder(flag), "FILE") ? Kind::kFile : Kind::kAny};
}

void Add(const Flags& flags, CompletionCommand& command) {
  for (const Flag& flag : flags) {
    if (absl::StartsWith(flag.name, "-")) {
      command.flags.push_back({flag.name, ValueOf(flag)});
    } else {
      command.argument = ValueOf(flag);
    }
  }
}

}  // namespace

std::string BashCompletion(const ProgramTable& program) {
  std::vector<CompletionCommand> commands(1);
  commands[0].argument.kind = Kind::kChoice;
  Add(program.common, commands[0]);
  for (const CommandTable& table : program.commands) {
    commands[0].argument.choices.push_back(table.name);
    CompletionCommand& command = commands.emplace_back();
    command.name = table.name;
    Add(table.flags, command);
    Add(program.common, command);
  }
  return proto::BashCompletion("attendant-client", commands);
}

}  // namespace attendant::client
