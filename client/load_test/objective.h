// Objective, a bound on a measured value of a load test, such as "p99<50ms".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/load_test/step_result.h"

namespace attendant::client {

// Immutable.
class Objective {
 public:
  // Parses "p99<50ms" (any percentile above 0 and below 100: "p99.9<1s"), "mean<20ms", "max<2s",
  // "throughput>100" and "goodput>100" (answered requests a second, and those answered within the
  // deadline), or "errors<0.1%" (share of failed requests). Spaces are ignored. INVALID_ARGUMENT
  // for anything else, with the reason.
  static absl::StatusOr<Objective> Parse(const std::string& text);

  const std::string& text() const { return text_; }
  bool is_latency() const { return unit_ == Unit::kMilliseconds; }
  bool is_errors() const { return unit_ == Unit::kShare; }
  absl::Duration latency() const { return absl::Milliseconds(bound_); }  // if is_latency()

  // Returns whether `result` meets the bound. A step without measurements meets none.
  bool HoldsIn(const StepResult& result) const;

  // Returns "p99<50ms: expected below 50 ms, measured 73.2 ms".
  std::string Compare(const StepResult& result) const;

 private:
  enum class Unit { kMilliseconds, kPerSecond, kShare };
  enum class Metric { kPercentile, kMean, kMax, kThroughput, kGoodput, kErrors };

  Objective() = default;
  absl::Status SetMetric(const std::string& name);
  absl::Status SetBound(const std::string& text);
  double Measured(const StepResult& result) const;
  std::string Format(double value) const;

  std::string text_;
  Metric metric_ = Metric::kMax;
  Unit unit_ = Unit::kMilliseconds;
  double percent_ = 0;  // of kPercentile
  double bound_ = 0;    // in units of `unit_`
};

// Parses each text; returns the first error.
absl::StatusOr<std::vector<Objective>> ParseObjectives(const std::vector<std::string>& texts);

// Returns `Compare` for each objective that is missed.
std::vector<std::string> MissedIn(const StepResult& result,
                                  const std::vector<Objective>& objectives);

}  // namespace attendant::client
