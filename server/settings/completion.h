// Completion of attendant-server by a shell, made from the table of settings.
#pragma once

#include <string>

namespace attendant::server {

// Returns a script for bash.
std::string BashCompletion();

}  // namespace attendant::server
