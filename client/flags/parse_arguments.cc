#include "client/flags/parse_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace attendant::client {
namespace {

// CLI11 takes a value such as "[CLS]" for a list, unless something stands before it.
constexpr char kMark = '\1';

std::string Marked(const std::string& argument) {
  if (argument.empty()) return argument;
  const bool is_list = argument.front() == '[' && argument.back() == ']';
  return is_list || argument.front() == kMark ? kMark + argument : argument;
}

std::vector<std::string> Unmarked(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    if (!text.empty() && text.front() == kMark) text.erase(0, 1);
  }
  return texts;
}

void AddFlag(const Flag& flag, CLI::App& app) {
  const std::string name = flag.name;
  const std::string names = name == "--help" ? "-h,--help" : name;
  switch (flag.kind.takes) {
    case FlagKind::Takes::kNothing:
      app.add_flag(names);
      return;
    case FlagKind::Takes::kMaybeOne:
      app.add_option(names)->expected(0, 1)->default_str(flag.kind.implied);
      break;
    case FlagKind::Takes::kOne:
    case FlagKind::Takes::kRepeated:
      app.add_option(names);
      break;
    case FlagKind::Takes::kList:
      app.add_option(names)->expected(-1);
      break;
  }
  app.get_option(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void TakeTexts(const Flags& flags, const CLI::App& app, ParsedArguments& parsed) {
  for (const Flag& flag : flags) {
    const CLI::Option& option = *app.get_option(flag.name);
    if (option.count() > 0) parsed.texts[flag.name] = Unmarked(option.results());
  }
}

}  // namespace

ParsedArguments ParseArguments(const ProgramTable& program,
                               const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.fallthrough();  // lets the common flags follow the command
  app.require_subcommand(0, 1);
  for (const Flag& flag : program.common) AddFlag(flag, app);
  for (const CommandTable& command : program.commands) {
    CLI::App* subcommand = app.add_subcommand(command.name);
    for (const Flag& flag : command.flags) AddFlag(flag, *subcommand);
  }
  ParsedArguments parsed;
  try {
    std::vector<std::string> reversed(arguments.size());
    std::transform(arguments.rbegin(), arguments.rend(), reversed.begin(), Marked);
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {  // with these options only of a missing value
    const std::string message = error.what();
    parsed.without_value = message.substr(0, message.find(':'));
  }
  parsed.unknown = Unmarked(app.remaining());
  TakeTexts(program.common, app, parsed);
  for (const CommandTable& command : program.commands) {
    if (!app.got_subcommand(command.name)) continue;
    parsed.command = &command;
    TakeTexts(command.flags, *app.get_subcommand(command.name), parsed);
  }
  return parsed;
}

}  // namespace attendant::client
