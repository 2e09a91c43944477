// StepResult, the outcome of one step of a load test: of one rate or one concurrency.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/load_test/recorder.h"

namespace attendant::client {

// A request that is sent later than due by more than this counts as late.
constexpr absl::Duration kLate = absl::Milliseconds(1);

// The load of one step.
struct LoadStep {
  std::optional<double> rate =
      {};               // requests per second of an open loop; absent: the loop is closed
  int concurrency = 1;  // requests under way in a closed loop
};

// Returns "100 requests/s" or "8 under way".
std::string Name(const LoadStep& step);

struct StepResult {
  // Each is 0 if nothing was measured.
  double throughput() const;  // answered requests per second
  double goodput() const;     // answered within the deadline, per second
  double tokens_per_second() const;
  double in_time_share() const;  // of all requests, like the shares below
  double error_share() const;
  // Sent more than `late` after they were due.
  double late_share(absl::Duration late = kLate) const;

  LoadStep load = {};
  Statistics measured = {};
  int64_t warmup_requests = 0;
  // Deadline of each call; later responses do not count as goodput.
  absl::Duration deadline = absl::InfiniteDuration();
  // From the start of the measurement to the last response; in an open loop at least --duration.
  absl::Duration elapsed = absl::ZeroDuration();
  std::vector<SecondOfLoad> seconds = {};
  // Responses that --verify found to differ; they count as errors (DATA_LOSS).
  int64_t mismatches = 0;
  // The missed bounds, each with the measured value.
  std::vector<std::string> missed = {};
};

}  // namespace attendant::client
