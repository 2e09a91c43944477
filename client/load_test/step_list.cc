#include "client/load_test/step_list.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attendant::client {
namespace {

constexpr int kMostSteps = 1000;

bool ParseValue(absl::string_view text, const StepRange& range, double& value) {
  return absl::SimpleAtod(text, &value) && value >= range.least && value <= range.most &&
         (!range.whole || value == std::round(value));
}

bool ParseRamp(absl::string_view text, size_t dots, const StepRange& range,
               std::vector<double>& steps) {
  const size_t colon = text.find(':', dots);
  if (colon == absl::string_view::npos) return false;
  double first = 0;
  double last = 0;
  int count = 0;
  if (!ParseValue(text.substr(0, dots), range, first) ||
      !ParseValue(text.substr(dots + 2, colon - dots - 2), range, last) ||
      !absl::SimpleAtoi(text.substr(colon + 1), &count) || count < 2 || count > kMostSteps) {
    return false;
  }
  for (int i = 0; i < count; ++i) {
    const double value = first + (last - first) * i / (count - 1);
    steps.push_back(range.whole ? std::round(value) : value);
  }
  return true;
}

bool ParseList(absl::string_view text, const StepRange& range, std::vector<double>& steps) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    double value = 0;
    if (steps.size() == kMostSteps || !ParseValue(part, range, value)) return false;
    steps.push_back(value);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<double>> ParseSteps(const std::string& text, const StepRange& range) {
  std::vector<double> steps;
  const size_t dots = text.find("..");
  const bool parsed = dots == std::string::npos ? ParseList(text, range, steps)
                                                : ParseRamp(text, dots, range, steps);
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a value, a list (50,100) or a ramp (50..400:8, with 2..", kMostSteps,
                     " steps) of ", range.whole ? "whole numbers" : "numbers", " in ", range.least,
                     "..", range.most, "; got \"", text, "\""));
  }
  return steps;
}

}  // namespace attendant::client
