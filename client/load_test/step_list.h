// Functions that read the loads of several steps from one flag.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::client {

// The values that are allowed, both ends included.
struct StepRange {
  double least;
  double most;
  bool whole = false;  // only whole numbers
};

// Parses "100", a list "50,100,200", or a ramp "50..400:8": 8 steps at equal distances from 50 to
// 400, rounded if they have to be whole. At most 1000 steps. INVALID_ARGUMENT for anything else.
absl::StatusOr<std::vector<double>> ParseSteps(const std::string& text, const StepRange& range);

}  // namespace attendant::client
