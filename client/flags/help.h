// The help of attendant-client, made from the tables of its command line.
#pragma once

#include <cstddef>
#include <string>

#include "client/flags/flag.h"

namespace attendant::client {

// Returns the list of commands, with the common flags and the exit codes.
std::string ProgramHelp(const ProgramTable& program, size_t columns);

// Returns the help of one command, with the common flags too.
std::string CommandHelp(const ProgramTable& program, const CommandTable& command, size_t columns);

// Returns the width for text on this descriptor: the terminal's width ($COLUMNS if it is set),
// clamped to 40..100; 80 if the descriptor is not a terminal.
size_t HelpColumns(int descriptor);

// Returns "INDEX"; "context|projected|block" if only these are allowed; the name of an argument;
// empty for a switch.
std::string Placeholder(const Flag& flag);

}  // namespace attendant::client
