// Completion of attendant-client by a shell, made from the tables of its command line.
#pragma once

#include <string>

#include "client/flags/flag.h"

namespace attendant::client {

// Returns a script for bash.
std::string BashCompletion(const ProgramTable& program);

}  // namespace attendant::client
