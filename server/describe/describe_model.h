// attendant-server --describe.
#pragma once

#include "server/settings/read_settings.h"

namespace attendant::server {

// Prints a report about the model in the settings to standard output. Exit codes: 0 it would be
// served; 1 it would be refused, or the output cannot be written.
int DescribeModel(const Settings& settings, const DescribeOptions& options);

}  // namespace attendant::server
