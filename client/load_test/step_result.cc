#include "client/load_test/step_result.h"

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

double PerSecond(int64_t count, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string Name(const LoadStep& step) {
  return step.rate ? absl::StrCat(*step.rate, " requests/s")
                   : absl::StrCat(step.concurrency, " in flight");
}

double StepResult::throughput() const { return PerSecond(measured.ok, elapsed); }
double StepResult::goodput() const { return PerSecond(measured.in_time, elapsed); }
double StepResult::tokens_per_second() const { return PerSecond(measured.tokens, elapsed); }
double StepResult::in_time_share() const {
  return Share(measured.in_time, measured.latency.count());
}
double StepResult::error_share() const {
  return Share(measured.error_count(), measured.latency.count());
}
double StepResult::late_share(absl::Duration late) const {
  return Share(measured.send_lag.CountAbove(late), measured.send_lag.count());
}

}  // namespace attendant::client
