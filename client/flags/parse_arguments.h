// The parser of command lines, which sorts arguments by flag and leaves their texts as they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/flags/flag.h"

namespace attendant::client {

// Points into the table.
struct ParsedArguments {
  const CommandTable* command = nullptr;                  // null: none is named
  std::map<std::string, std::vector<std::string>> texts;  // of each flag that is given, by its name
  std::vector<std::string> unknown;                       // the other arguments, in their order
  std::string without_value;  // a flag at the end that lacks its value; empty: none
};

ParsedArguments ParseArguments(const ProgramTable& program,
                               const std::vector<std::string>& arguments);

}  // namespace attendant::client
