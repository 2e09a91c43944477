// The report of a load test as JSON.
#pragma once

#include "client/json/json_value.h"
#include "client/load_report/report.h"

namespace attendant::client {

// Returns the report as one JSON document, with times in milliseconds unless a name says otherwise.
// `steps` has an element for each step, however many there are.
JsonValue ReportJson(const LoadReport& report);

}  // namespace attendant::client
