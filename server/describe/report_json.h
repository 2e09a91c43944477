// A model report for scripts.
#pragma once

#include <string>

#include "server/describe/model_report.h"

namespace attendant::server {

// Returns a JSON document with a final line break; its `description` is Describe(report).
std::string ToJson(const ModelReport& report);

}  // namespace attendant::server
