// The results of a load test.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/load_test/recorder.h"

namespace attendant::client {

struct LoadReport {
  // What was run, in the order to print: {"method", "encode"}, …
  std::vector<std::pair<std::string, std::string>> plan;
  Statistics measured;
  int64_t warmup_requests = 0;
  // From the start of measuring to the last answer.
  absl::Duration elapsed;
};

// More than this late, a request counts as sent late.
constexpr absl::Duration kLate = absl::Milliseconds(1);

// An aligned table, with a warning if more than 1 % of the requests were sent late: the generator
// was the bottleneck, and latencies include its own delay.
std::string ReportTable(const LoadReport& report);

// The report as one JSON document; times in milliseconds.
nlohmann::ordered_json ReportJson(const LoadReport& report);

// One line about `interval`, which took `took` and ended `since_start` after the start.
std::string ProgressLine(const Statistics& interval, absl::Duration took,
                         absl::Duration since_start);

}  // namespace attendant::client
