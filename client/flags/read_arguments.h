// The reader of command lines, which turns the texts of flags into values and explains mistakes.
#pragma once

#include "absl/status/status.h"
#include "client/flags/flag.h"
#include "client/flags/parse_arguments.h"

namespace attendant::client {

// Stores the value of every flag. Returns INVALID_ARGUMENT if the command or a flag is unknown,
// lacks its value, has an invalid value, or is combined with the wrong flags. The message names the
// flag, the expected and the received value, a similar name, and the command that prints help. The
// common flags are read first, so that they have their values even if others are invalid.
absl::Status ReadArguments(const ProgramTable& program, const ParsedArguments& parsed);

}  // namespace attendant::client
