#include "client/load_test/report.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant::client {
namespace {

constexpr double kTolerableLateShare = 0.01;

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}};

double PerSecond(int64_t count, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

template <typename Number>
double Mean(Number sum, int64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

double LateShare(const Statistics& measured) {
  return Mean(measured.send_lag.CountAbove(kLate), measured.send_lag.count());
}

std::vector<std::pair<std::string, double>> LatencyRow(const Histogram& latency) {
  std::vector<std::pair<std::string, double>> row = {{"mean", Milliseconds(latency.mean())}};
  for (const auto& [name, percent] : kPercentiles) {
    row.emplace_back(name, Milliseconds(latency.Percentile(percent)));
  }
  row.emplace_back("max", Milliseconds(latency.max()));
  return row;
}

std::string Line(const std::string& title, const std::string& value) {
  return absl::StrFormat("%-18s %s\n", title, value);
}

std::string RequestsLine(const LoadReport& report) {
  std::string line =
      absl::StrFormat("%d ok, %d errors in %.2f s", report.measured.ok,
                      report.measured.error_count(), absl::ToDoubleSeconds(report.elapsed));
  if (report.warmup_requests > 0) {
    absl::StrAppendFormat(&line, "; %d more to warm up", report.warmup_requests);
  }
  return line;
}

std::string GoodputLine(const LoadReport& report) {
  const Statistics& measured = report.measured;
  return absl::StrFormat("%.2f requests/s: %d answered within %s, %.1f %% of all",
                         PerSecond(measured.in_time, report.elapsed), measured.in_time,
                         absl::FormatDuration(report.deadline),
                         100 * Mean(measured.in_time, measured.latency.count()));
}

nlohmann::ordered_json DeadlineJson(absl::Duration deadline) {
  if (deadline == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(deadline);
}

nlohmann::ordered_json Object(const std::vector<std::pair<std::string, double>>& row) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : row) object[name] = value;
  return object;
}

}  // namespace

std::string ReportTable(const LoadReport& report) {
  const Statistics& measured = report.measured;
  std::string table;
  for (const auto& [name, value] : report.plan) table += Line(name, value);
  absl::StrAppend(&table, "\n", Line("requests", RequestsLine(report)));
  for (const auto& [code, count] : measured.errors) {
    table += Line("", absl::StrCat(absl::StatusCodeToString(code), ": ", count));
  }
  table += Line("throughput", absl::StrFormat("%.1f kept tokens/s, %.2f requests/s",
                                              PerSecond(measured.tokens, report.elapsed),
                                              PerSecond(measured.ok, report.elapsed)));
  table += Line("goodput", GoodputLine(report));
  std::string names;
  std::string values;
  for (const auto& [name, value] : LatencyRow(measured.latency)) {
    const std::string text = absl::StrFormat("%.3f", value);
    const int width = static_cast<int>(std::max(name.size(), text.size()));
    const char* gap = names.empty() ? "" : "  ";
    absl::StrAppendFormat(&names, "%s%*s", gap, width, name);
    absl::StrAppendFormat(&values, "%s%*s", gap, width, text);
  }
  table += absl::StrCat(Line("latency, ms", names), Line("", values));
  table += Line("sent late by, ms", absl::StrFormat("p50 %.3f  p99 %.3f  max %.3f",
                                                    Milliseconds(measured.send_lag.Percentile(50)),
                                                    Milliseconds(measured.send_lag.Percentile(99)),
                                                    Milliseconds(measured.send_lag.max())));
  table +=
      Line("server, mean ms", absl::StrFormat("queue %.3f  copy %.3f  compute %.3f",
                                              Mean(Milliseconds(measured.queue), measured.ok),
                                              Mean(Milliseconds(measured.copy), measured.ok),
                                              Mean(Milliseconds(measured.compute), measured.ok)));
  table += Line("its batches, mean", absl::StrFormat("%.1f tokens, %.2f requests",
                                                     Mean(measured.batch_tokens, measured.ok),
                                                     Mean(measured.batch_requests, measured.ok)));
  if (LateShare(measured) > kTolerableLateShare) {
    table += absl::StrFormat(
        "\nwarning: %.1f %% of the requests were sent more than 1 ms late; this machine could not "
        "keep up with the rate, and the latencies include its delay\n",
        100 * LateShare(measured));
  }
  return table;
}

nlohmann::ordered_json ReportJson(const LoadReport& report) {
  const Statistics& measured = report.measured;
  nlohmann::ordered_json plan = nlohmann::ordered_json::object();
  for (const auto& [name, value] : report.plan) plan[name] = value;
  nlohmann::ordered_json errors = nlohmann::ordered_json::object();
  for (const auto& [code, count] : measured.errors) errors[absl::StatusCodeToString(code)] = count;
  return {{"plan", plan},
          {"elapsed_s", absl::ToDoubleSeconds(report.elapsed)},
          {"ok", measured.ok},
          {"errors", errors},
          {"warmup_requests", report.warmup_requests},
          {"tokens", measured.tokens},
          {"tokens_per_s", PerSecond(measured.tokens, report.elapsed)},
          {"requests_per_s", PerSecond(measured.ok, report.elapsed)},
          {"goodput",
           {{"deadline_s", DeadlineJson(report.deadline)},
            {"in_time", measured.in_time},
            {"requests_per_s", PerSecond(measured.in_time, report.elapsed)},
            {"share", Mean(measured.in_time, measured.latency.count())}}},
          {"latency_ms", Object(LatencyRow(measured.latency))},
          {"send_lag_ms",
           {{"p50", Milliseconds(measured.send_lag.Percentile(50))},
            {"p99", Milliseconds(measured.send_lag.Percentile(99))},
            {"max", Milliseconds(measured.send_lag.max())}}},
          {"late_share", LateShare(measured)},
          {"server_ms",
           {{"queue", Mean(Milliseconds(measured.queue), measured.ok)},
            {"copy", Mean(Milliseconds(measured.copy), measured.ok)},
            {"compute", Mean(Milliseconds(measured.compute), measured.ok)}}},
          {"batch",
           {{"tokens", Mean(measured.batch_tokens, measured.ok)},
            {"requests", Mean(measured.batch_requests, measured.ok)}}}};
}

std::string ProgressLine(const Statistics& interval, absl::Duration took,
                         absl::Duration since_start) {
  return absl::StrFormat(
      "%5.0f s  ok %d  errors %d  %.1f req/s  %.0f tokens/s  p50 %.1f ms  p99 %.1f ms",
      absl::ToDoubleSeconds(since_start), interval.ok, interval.error_count(),
      PerSecond(interval.ok, took), PerSecond(interval.tokens, took),
      Milliseconds(interval.latency.Percentile(50)), Milliseconds(interval.latency.Percentile(99)));
}

}  // namespace attendant::client
