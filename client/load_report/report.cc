#include "client/load_report/report.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/load_report/latency_row.h"

namespace attendant::client {
namespace {

constexpr double kTolerableLateShare = 0.01;

std::string Line(const std::string& title, const std::string& value) {
  return absl::StrFormat("%-18s %s\n", title, value);
}

std::string RequestsLine(const StepResult& step) {
  std::string line =
      absl::StrFormat("%d ok, %d errors in %.2f s", step.measured.ok, step.measured.error_count(),
                      absl::ToDoubleSeconds(step.elapsed));
  if (step.warmup_requests > 0) {
    absl::StrAppendFormat(&line, "; %d more during warm-up", step.warmup_requests);
  }
  return line;
}

std::string GoodputLine(const StepResult& step) {
  return absl::StrFormat("%.2f requests/s: %d answered within %s, %.1f %% of all", step.goodput(),
                         step.measured.in_time, absl::FormatDuration(step.deadline),
                         100 * step.in_time_share());
}

std::string LatencyLines(const Histogram& latency) {
  std::string names;
  std::string values;
  for (const auto& [name, value] : LatencyRow(latency)) {
    const std::string text = absl::StrFormat("%.3f", value);
    const int width = static_cast<int>(std::max(name.size(), text.size()));
    const char* gap = names.empty() ? "" : "  ";
    absl::StrAppendFormat(&names, "%s%*s", gap, width, name);
    absl::StrAppendFormat(&values, "%s%*s", gap, width, text);
  }
  return absl::StrCat(Line("latency, ms", names), Line("", values));
}

std::string StepInFull(const StepResult& step) {
  const Statistics& measured = step.measured;
  std::string table = Line("requests", RequestsLine(step));
  for (const auto& [code, count] : measured.errors) {
    table += Line("", absl::StrCat(absl::StatusCodeToString(code), ": ", count));
  }
  if (step.mismatches > 0) {
    table += Line("", absl::StrCat("different bits: ", step.mismatches));
  }
  table += Line("throughput", absl::StrFormat("%.1f kept tokens/s, %.2f requests/s",
                                              step.tokens_per_second(), step.throughput()));
  table += Line("goodput", GoodputLine(step));
  table += LatencyLines(measured.latency);
  table += Line("send delay, ms",
                absl::StrFormat("p50 %.3f  p99 %.3f  max %.3f",
                                absl::ToDoubleMilliseconds(measured.send_lag.Percentile(50)),
                                absl::ToDoubleMilliseconds(measured.send_lag.Percentile(99)),
                                absl::ToDoubleMilliseconds(measured.send_lag.max())));
  if (measured.batch_requests == 0)
    return table;  // the Open Inference Protocol reports none of these
  table += Line("server, mean ms",
                absl::StrFormat("queue %.3f  copy %.3f  compute %.3f",
                                Mean(absl::ToDoubleMilliseconds(measured.queue), measured.ok),
                                Mean(absl::ToDoubleMilliseconds(measured.copy), measured.ok),
                                Mean(absl::ToDoubleMilliseconds(measured.compute), measured.ok)));
  // A mean over requests: larger batches count more often than in a mean over batches.
  table += Line("batch of a request", absl::StrFormat("mean %.1f tokens, %.2f requests",
                                                      Mean(measured.batch_tokens, measured.ok),
                                                      Mean(measured.batch_requests, measured.ok)));
  return table;
}

// Returns a line for each step, as wide as the first line with the names of the columns.
std::string StepLines(const std::vector<StepResult>& steps, bool searched) {
  std::string table = absl::StrFormat("%-24s %10s %10s %10s %10s %10s %9s %9s%s\n", "load",
                                      "answered/s", "goodput/s", "mean ms", "p50 ms", "p99 ms",
                                      "errors %", "late %", searched ? "   met" : "");
  for (const StepResult& step : steps) {
    const Histogram& latency = step.measured.latency;
    absl::StrAppendFormat(&table, "%-24s %10.2f %10.2f %10.3f %10.3f %10.3f %9.3f %9.3f",
                          Name(step.load), step.throughput(), step.goodput(),
                          absl::ToDoubleMilliseconds(latency.mean()),
                          absl::ToDoubleMilliseconds(latency.Percentile(50)),
                          absl::ToDoubleMilliseconds(latency.Percentile(99)),
                          100 * step.error_share(), 100 * step.late_share());
    // The closed loop before the search has nothing to hold.
    if (searched && step.load.rate) table += step.missed.empty() ? "   yes" : "    no";
    table += "\n";
  }
  return table;
}

std::string SearchLines(const FoundRate& search) {
  std::string found = "none of the rates tried";
  if (search.found > 0) {
    found = absl::StrFormat("%.6g requests/s", search.found);
    if (search.failed) absl::StrAppendFormat(&found, "; it fails at %.6g", *search.failed);
    if (!search.converged) found += "; the search ended early";
  }
  return absl::StrCat("\n", Line("objectives", absl::StrJoin(search.objectives, ", ")),
                      Line("closed loop", absl::StrFormat("%.2f requests/s", search.capacity)),
                      Line("highest rate", found));
}

std::string LateWarning(const StepResult& step, bool named) {
  if (step.late_share() <= kTolerableLateShare) return "";
  return absl::StrFormat(
      "\nwarning: %s%.1f %% of the requests were sent more than 1 ms late; this machine could not "
      "keep up with the rate, and the latencies include its delay\n",
      named ? absl::StrCat("at ", Name(step.load), ", ") : "", 100 * step.late_share());
}

}  // namespace

std::string ReportTable(const LoadReport& report) {
  std::string table;
  for (const auto& [name, value] : report.plan) table += Line(name, value);
  table += "\n";
  const bool one = report.steps.size() == 1 && !report.search;
  table += one ? StepInFull(report.steps[0]) : StepLines(report.steps, report.search.has_value());
  if (report.search) table += SearchLines(*report.search);
  for (const StepResult& step : report.steps) table += LateWarning(step, !one);
  return table;
}

std::string ProgressLine(const Statistics& interval, absl::Duration took,
                         absl::Duration since_start) {
  const double seconds = absl::ToDoubleSeconds(took);
  const auto per_second = [&](int64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  return absl::StrFormat(
      "%5.0f s  ok %d  errors %d  %.1f req/s  %.0f tokens/s  p50 %.1f ms  p99 %.1f ms",
      absl::ToDoubleSeconds(since_start), interval.ok, interval.error_count(),
      per_second(interval.ok), per_second(interval.tokens),
      absl::ToDoubleMilliseconds(interval.latency.Percentile(50)),
      absl::ToDoubleMilliseconds(interval.latency.Percentile(99)));
}

}  // namespace attendant::client
