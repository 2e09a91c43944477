#include "client/load_test/rate_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

// A closed loop measures the server's rate at one concurrency. Above it an open loop may find a
// little more, below it any latency may be out of reach.
constexpr double kFirst = 0.5;
constexpr double kUp = 1.5;
constexpr double kDown = 0.5;
constexpr double kIdle = 0.01;
constexpr int kParts = 10;  // of a latency: a delay of one of them matters

std::string Exceeded(const char* name, double share, double most) {
  return absl::StrFormat("%s: expected at most %.4g %%, measured %.4g %%", name, 100 * most,
                         100 * share);
}

// Returns the delay of a request's sending that matters to the objectives.
absl::Duration Late(const std::vector<Objective>& objectives) {
  absl::Duration late = absl::InfiniteDuration();
  for (const Objective& objective : objectives) {
    if (objective.is_latency()) late = std::min(late, objective.latency() / kParts);
  }
  return std::max(late, kLate);
}

// Returns the bounds that `result` misses.
std::vector<std::string> Missed(const RateSearchOptions& options, const StepResult& result) {
  std::vector<std::string> missed = MissedIn(result, options.objectives);
  if (result.measured.ok == 0) missed.emplace_back("no request succeeded");
  if (result.error_share() > options.most_errors) {
    missed.push_back(Exceeded("errors", result.error_share(), options.most_errors));
  }
  const double late = result.late_share(Late(options.objectives));
  if (late > options.most_late) missed.push_back(Exceeded("sent late", late, options.most_late));
  return missed;
}

// Returns the rate to try next; nothing if the search has ended.
std::optional<double> NextRate(const RateSearchOptions& options, double capacity,
                               const RateSearch& search) {
  if (!search.failed) {
    const double next = std::min(search.found * kUp, options.most_rate);
    return next > search.found ? std::optional(next) : std::nullopt;
  }
  if (search.found == 0) {
    const double next = *search.failed * kDown;
    const double least = std::max(options.least_rate, capacity * kIdle);
    return next >= least ? std::optional(next) : std::nullopt;
  }
  if (search.converged) return std::nullopt;
  return std::sqrt(search.found * *search.failed);
}

}  // namespace

RateSearch SearchRate(const RateSearchOptions& options, double capacity,
                      const MeasureRate& measure) {
  RateSearch search;
  std::optional<double> rate = std::clamp(capacity * kFirst, options.least_rate, options.most_rate);
  while (rate && static_cast<int>(search.steps.size()) < options.most_steps) {
    std::optional<StepResult> result = measure(*rate);
    if (!result) break;
    result->missed = Missed(options, *result);
    if (result->missed.empty()) {
      search.found = *rate;
    } else {
      search.failed = *rate;
    }
    search.steps.push_back(*std::move(result));
    search.converged =
        search.found > 0 && search.failed && *search.failed <= search.found * (1 + options.width);
    rate = NextRate(options, capacity, search);
  }
  return search;
}

}  // namespace attendant::client
