// The program attendant-client without its main function.
#pragma once

#include <ostream>

namespace attendant::client {

// Parses the command line, runs the command and returns its exit code (client/cli/command.h).
// Throws nothing.
int RunCommandLine(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace attendant::client
