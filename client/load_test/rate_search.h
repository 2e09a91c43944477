// SearchRate, the search for the highest rate at which a server keeps its objectives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/load_test/objective.h"
#include "client/load_test/step_result.h"

namespace attendant::client {

struct RateSearchOptions {
  std::vector<Objective> objectives = {};
  // A step also fails if more than these shares of its requests failed, or were sent so late that
  // it matters to the objectives: by a tenth of the lowest latency among them, and at least kLate.
  double most_errors = 0.001;
  double most_late = 0.01;
  // The search ends when the lowest rate that failed is at most this much above the highest one
  // that held, relative to the latter.
  double width = 0.05;
  int most_steps = 30;
  // The search goes down no further than this, nor than a hundredth of the capacity, where a server
  // is idle: an objective that it misses there is out of reach.
  double least_rate = 1e-3;
  double most_rate = 1e6;
};

struct RateSearch {
  // The highest rate that passed below every rate that failed; 0 if none did.
  double found = 0;
  // The lowest rate that failed; absent if none did.
  std::optional<double> failed = {};
  std::vector<StepResult> steps =
      {};                  // in the order in which they ran; `missed` is empty if the rate passed
  bool converged = false;  // found and failed are at most `width` apart
};

// Measures one rate. Returns nullopt if the user interrupted it, which ends the search.
using MeasureRate = std::function<std::optional<StepResult>(double rate)>;

// Starts at half of `capacity`, the requests per second of a closed loop, goes up or down until one
// rate passes and one fails, and then halves the interval between them (at the geometric mean).
// Assumes that a server which fails at one rate fails at every higher rate.
RateSearch SearchRate(const RateSearchOptions& options, double capacity,
                      const MeasureRate& measure);

}  // namespace attendant::client
