// A model report for humans.
#pragma once

#include <string>

#include "server/describe/model_report.h"

namespace attendant::server {

// Returns lines without other control characters, whatever the file names contain.
std::string ToText(const ModelReport& report);

}  // namespace attendant::server
