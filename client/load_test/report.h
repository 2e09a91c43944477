// LoadReport, the results of a load test, and its forms as a table and as JSON.
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
  // The settings of the test, in the order in which they are printed: {"method", "encode"}, …
  std::vector<std::pair<std::string, std::string>> plan;
  Statistics measured;
  int64_t warmup_requests = 0;
  // Each call's; later answers are no goodput.
  absl::Duration deadline = absl::InfiniteDuration();
  // From the start of the measurement to the last answer.
  absl::Duration elapsed;
};

// A request that is sent later than due by more than this counts as late.
constexpr absl::Duration kLate = absl::Milliseconds(1);

// Returns an aligned table, with a warning if more than 1 % of the requests were sent late: then
// the generator was the bottleneck, and latencies include its own delay.
std::string ReportTable(const LoadReport& report);

// Returns the report as one JSON document, with times in milliseconds.
nlohmann::ordered_json ReportJson(const LoadReport& report);

// Returns one line about `interval`, which lasted `took` and ended `since_start` after the start.
std::string ProgressLine(const Statistics& interval, absl::Duration took,
                         absl::Duration since_start);

}  // namespace attendant::client
