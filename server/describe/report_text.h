// A model report for people.
#pragma once

#include <string>

#include "server/describe/model_report.h"

namespace attendant::server {

// Lines without control characters but the line breaks, whatever the files' names hold.
std::string ToText(const ModelReport& report);

}  // namespace attendant::server
