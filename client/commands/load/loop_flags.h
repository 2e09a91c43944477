// LoopFlags, the load-test flags for the times of requests and the duration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/flags/flag.h"
#include "client/load_test/arrival_schedule.h"
#include "client/load_test/load_generator.h"
#include "client/load_test/rate_search.h"
#include "client/load_test/step_result.h"

namespace attendant::client {

// The values of the flags.
struct LoopOptions {
  // Returns when to send the requests of one step.
  LoadPlan PlanOf(const LoadStep& step) const;
  // Returns "open, 50..400:8 requests/s, poisson".
  std::string Describe() const;

  std::vector<LoadStep> steps;              // with a search: the closed loop before it
  std::optional<RateSearchOptions> search;  // of --find-rate
  std::string step_text;                    // the flag that gave the steps
  // Times of a replay, which has one step with its mean rate; null without a replay.
  std::shared_ptr<const std::vector<double>> timestamps;
  double speed = 1;
  Arrival arrival = Arrival::kConstant;
  absl::Duration warmup;
  absl::Duration duration;
  int64_t requests = 0;  // 0: no limit but the duration
  int connections = 1;
  uint64_t seed = 1;
};

class LoopFlags {
 public:
  // Adds the flags, which write into this object.
  void AddTo(CommandTable& load_test);

  // Returns the values of the flags. INVALID_ARGUMENT names the flag that is wrong.
  absl::StatusOr<LoopOptions> Read(uint64_t seed) const;

 private:
  Flags StepFlags();
  absl::Status ReadSteps(LoopOptions& options) const;
  absl::Status ReadSearch(LoopOptions& options) const;
  absl::Status ReadReplay(LoopOptions& options) const;

  std::string concurrency_;
  std::string rate_;
  std::vector<std::string> find_rate_;
  std::string find_width_ = "5%";
  Arrival arrival_ = Arrival::kConstant;
  std::string timestamps_file_;
  double speed_ = 1;
  std::optional<absl::Duration> warmup_;
  std::optional<absl::Duration> duration_;
  int64_t requests_ = 0;  // 0: unlimited
  int connections_ = 1;
};

}  // namespace attendant::client
