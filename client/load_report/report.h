// LoadReport, the results of a load test, and its form as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/json/json_value.h"
#include "client/load_test/rate_search.h"
#include "client/load_test/step_result.h"

namespace attendant::client {

// The outcome of --find-rate; the report contains its steps.
struct FoundRate {
  std::vector<std::string> objectives = {};
  double width = 0;
  double capacity = 0;  // requests per second of the closed loop before the search
  double found = 0;     // 0: no rate passed
  std::optional<double> failed = {};
  bool converged = false;
};

// Origin of a report: place, time and programs, so that the test can be repeated.
struct RunFacts {
  std::vector<std::string> command_line;
  absl::Time started;
  uint64_t seed = 0;
  std::string client_version;
  std::string address;
  std::string server;          // empty: the server does not say
  std::string server_version;  // as `server`
  // What GetModel tells of the model that was asked: compute_type, gemm, thread_plan, …
  JsonValue model;
};

struct LoadReport {
  RunFacts run = {};
  // The settings of the test, in the order in which they are printed: {"method", "encode"}, …
  std::vector<std::pair<std::string, std::string>> plan = {};
  std::vector<StepResult> steps = {};  // in the order in which they ran
  bool interrupted = false;  // by Ctrl-C: the last step is shorter, later ones are missing
  std::optional<FoundRate> search = {};
  std::optional<JsonValue> metrics = {};  // the server's, as MetricsJson returns them
};

// Returns the plan, then one step in full or one line per step, and the result of a search. Warns
// if more than 1 % of the requests were sent late: then the generator was the bottleneck, and
// latencies include its own delay.
std::string ReportTable(const LoadReport& report);

// Returns one line about `interval`, which lasted `took` and ended `since_start` after the start.
std::string ProgressLine(const Statistics& interval, absl::Duration took,
                         absl::Duration since_start);

}  // namespace attendant::client
