// The report of load tests as a page of HTML.
#pragma once

#include <string>
#include <vector>

#include "client/json/json_value.h"

namespace attendant::client {

// A report and the name under which the page shows it.
struct NamedReport {
  std::string name;
  JsonValue document;  // as ReportJson makes it
};

// Returns one self-contained page, which asks no server for anything: of one report, or of two that
// it compares.
std::string LoadPage(const std::vector<NamedReport>& reports);

}  // namespace attendant::client
