// Functions for reports that a load test has saved as JSON.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/load_report/report_page.h"

namespace attendant::client {

// Reads a file with the output of `load-test --json`. The report gets the name of the file. The
// error begins with its path; INVALID_ARGUMENT: it holds something else.
absl::StatusOr<NamedReport> ReadReport(const std::string& path);

// Returns a table of the figures of one report.
std::string SavedTable(const JsonValue& report);

// Returns a table of the figures of the steps that have the same load in both, and how b's differ
// from a's.
std::string ComparisonTable(const JsonValue& a, const JsonValue& b);

}  // namespace attendant::client
