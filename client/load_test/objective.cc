#include "client/load_test/objective.h"

#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace attendant::client {
namespace {

constexpr char kForms[] =
    "expected an objective such as p99<50ms, mean<20ms, max<1s, throughput>100, goodput>100 or "
    "errors<0.1%";

absl::Status Invalid(const std::string& text, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(expected, "; got \"", text, "\""));
}

}  // namespace

absl::StatusOr<Objective> Objective::Parse(const std::string& text) {
  Objective objective;
  objective.text_ = absl::StrReplaceAll(text, {{" ", ""}});
  const size_t sign = objective.text_.find_first_of("<>");
  if (sign == std::string::npos) return Invalid(text, kForms);
  absl::Status status = objective.SetMetric(objective.text_.substr(0, sign));
  if (!status.ok()) return status;
  const char expected = objective.unit_ == Unit::kPerSecond ? '>' : '<';
  if (objective.text_[sign] != expected) {
    return Invalid(text, absl::StrCat("expected '", std::string(1, expected), "' after ",
                                      objective.text_.substr(0, sign)));
  }
  status = objective.SetBound(objective.text_.substr(sign + 1));
  if (!status.ok()) return status;
  return objective;
}

absl::Status Objective::SetMetric(const std::string& name) {
  constexpr std::pair<const char*, std::pair<Metric, Unit>> kMetrics[] = {
      {"mean", {Metric::kMean, Unit::kMilliseconds}},
      {"max", {Metric::kMax, Unit::kMilliseconds}},
      {"throughput", {Metric::kThroughput, Unit::kPerSecond}},
      {"goodput", {Metric::kGoodput, Unit::kPerSecond}},
      {"errors", {Metric::kErrors, Unit::kShare}}};
  for (const auto& [known, meaning] : kMetrics) {
    if (name != known) continue;
    std::tie(metric_, unit_) = meaning;
    return absl::OkStatus();
  }
  absl::string_view percent = name;
  if (!absl::ConsumePrefix(&percent, "p") || !absl::SimpleAtod(percent, &percent_)) {
    return Invalid(text_, kForms);
  }
  if (!(percent_ > 0 && percent_ < 100)) {
    return Invalid(text_, "expected a percentile above 0 and below 100");
  }
  metric_ = Metric::kPercentile;
  return absl::OkStatus();
}

absl::Status Objective::SetBound(const std::string& text) {
  absl::string_view number = text;
  switch (unit_) {
    case Unit::kMilliseconds: {
      absl::Duration bound;
      if (!absl::ParseDuration(text, &bound) || bound <= absl::ZeroDuration() ||
          bound == absl::InfiniteDuration()) {
        return Invalid(text_, "expected a duration above 0 with its unit, such as 50ms or 1s");
      }
      bound_ = absl::ToDoubleMilliseconds(bound);
      return absl::OkStatus();
    }
    case Unit::kPerSecond:
      if (!absl::SimpleAtod(text, &bound_) || !(bound_ > 0 && bound_ < 1e12)) {
        return Invalid(text_, "expected requests per second, a number above 0");
      }
      return absl::OkStatus();
    case Unit::kShare:
      if (!absl::ConsumeSuffix(&number, "%") || !absl::SimpleAtod(number, &bound_) ||
          !(bound_ > 0 && bound_ <= 100)) {
        return Invalid(text_, "expected a share above 0% and up to 100%, such as 0.1%");
      }
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

double Objective::Measured(const StepResult& result) const {
  const Histogram& latency = result.measured.latency;
  switch (metric_) {
    case Metric::kPercentile:
      return absl::ToDoubleMilliseconds(latency.Percentile(percent_));
    case Metric::kMean:
      return absl::ToDoubleMilliseconds(latency.mean());
    case Metric::kMax:
      return absl::ToDoubleMilliseconds(latency.max());
    case Metric::kThroughput:
      return result.throughput();
    case Metric::kGoodput:
      return result.goodput();
    case Metric::kErrors:
      return 100 * result.error_share();
  }
  return 0;
}

bool Objective::HoldsIn(const StepResult& result) const {
  if (result.measured.latency.count() == 0) return false;
  const double measured = Measured(result);
  return unit_ == Unit::kPerSecond ? measured > bound_ : measured < bound_;
}

std::string Objective::Format(double value) const {
  switch (unit_) {
    case Unit::kMilliseconds:
      return absl::StrFormat("%.6g ms", value);
    case Unit::kPerSecond:
      return absl::StrFormat("%.6g requests/s", value);
    case Unit::kShare:
      return absl::StrFormat("%.4g %%", value);
  }
  return "";
}

std::string Objective::Compare(const StepResult& result) const {
  const bool measured = result.measured.latency.count() > 0;
  return absl::StrCat(
      text_, ": expected ", unit_ == Unit::kPerSecond ? "above " : "below ", Format(bound_), ", ",
      measured ? absl::StrCat("measured ", Format(Measured(result))) : "nothing was measured");
}

absl::StatusOr<std::vector<Objective>> ParseObjectives(const std::vector<std::string>& texts) {
  std::vector<Objective> objectives;
  for (const std::string& text : texts) {
    absl::StatusOr<Objective> objective = Objective::Parse(text);
    if (!objective.ok()) return objective.status();
    objectives.push_back(*std::move(objective));
  }
  return objectives;
}

std::vector<std::string> MissedIn(const StepResult& result,
                                  const std::vector<Objective>& objectives) {
  std::vector<std::string> missed;
  for (const Objective& objective : objectives) {
    if (!objective.HoldsIn(result)) missed.push_back(objective.Compare(result));
  }
  return missed;
}

}  // namespace attendant::client
