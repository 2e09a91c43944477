// The reader of command lines, which turns the texts of flags into values and explains mistakes.
#pragma once

#include "absl/status/status.h"
#include "client/flags/flag.h"
#include "client/flags/parse_arguments.h"

namespace attendant::client {

// Stores the value of every flag. INVALID_ARGUMENT: the command or a flag is unknown, lacks its
// value, has a wrong one, or is combined with the wrong flags. Then the message names the flag,
// what was expected and what came, a similar name, and the help to look into. The common flags are
// read first, so that they have their values even if the rest is wrong.
absl::Status ReadArguments(const ProgramTable& program, const ParsedArguments& parsed);

}  // namespace attendant::client
