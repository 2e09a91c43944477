// Shell completion of attendant-server, derived from the settings table.
#pragma once

#include <string>

namespace attendant::server {

// Returns a bash script.
std::string BashCompletion();

}  // namespace attendant::server
