// A report of one step for tests.
#pragma once

#include "client/load_report/report.h"

namespace attendant::client {

// Returns statistics of 200 answers of 10 tokens after 1..200 ms, with a deadline of 150 ms, and of
// 4 errors after 300 ms, in 2 s.
LoadReport SomeReport();

// Returns the report of a search with the closed loop before it, a rate that held and one that
// failed.
LoadReport SomeSearch();

}  // namespace attendant::client
