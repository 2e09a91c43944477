#include "client/load_report/report_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "client/load_report/latency_row.h"

namespace attendant::client {
namespace {

using Json = nlohmann::ordered_json;

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

Json DeadlineJson(absl::Duration deadline) {
  if (deadline == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(deadline);
}

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json LoadJson(const LoadStep& load) {
  return load.rate ? Json{{"rate", *load.rate}} : Json{{"concurrency", load.concurrency}};
}

template <typename Pairs>
Json Object(const Pairs& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

Json ErrorsJson(const std::map<absl::StatusCode, int64_t>& errors) {
  Json object = Json::object();
  for (const auto& [code, count] : errors) object[absl::StatusCodeToString(code)] = count;
  return object;
}

// The last one is a part of a second: until the last answer.
Json SecondsJson(const std::vector<SecondOfLoad>& seconds, absl::Duration elapsed) {
  Json list = Json::array();
  for (const SecondOfLoad& second : seconds) {
    const double begun = static_cast<double>(list.size());
    const double length = std::clamp(absl::ToDoubleSeconds(elapsed) - begun, 0.0, 1.0);
    list.push_back({{"length_s", length},
                    {"sent", second.sent},
                    {"ok", second.ok},
                    {"errors", ErrorsJson(second.errors)},
                    {"p50_ms", Milliseconds(second.p50)},
                    {"p99_ms", Milliseconds(second.p99)},
                    {"queue_ms", Mean(Milliseconds(second.queue), second.ok)},
                    {"copy_ms", Mean(Milliseconds(second.copy), second.ok)},
                    {"compute_ms", Mean(Milliseconds(second.compute), second.ok)},
                    {"batch_requests", Mean(second.batch_requests, second.ok)}});
  }
  return list;
}

Json HistogramJson(const Histogram& histogram) {
  Json list = Json::array();
  for (const Histogram::Bucket& bucket : histogram.Buckets()) {
    list.push_back({Milliseconds(bucket.upper), bucket.count});
  }
  return list;
}

Json RunJson(const RunFacts& run) {
  return {{"command_line", run.command_line},
          {"started", absl::FormatTime(absl::RFC3339_sec, run.started, absl::UTCTimeZone())},
          {"seed", run.seed},
          {"client_version", run.client_version},
          {"address", run.address},
          {"server", run.server},
          {"server_version", run.server_version},
          {"model", *run.model}};
}

Json StepJson(const StepResult& step) {
  const Statistics& measured = step.measured;
  return {{"load", LoadJson(step.load)},
          {"missed", step.missed},
          {"elapsed_s", absl::ToDoubleSeconds(step.elapsed)},
          {"ok", measured.ok},
          {"errors", ErrorsJson(measured.errors)},
          {"mismatches", step.mismatches},
          {"warmup_requests", step.warmup_requests},
          {"tokens", measured.tokens},
          {"tokens_per_s", step.tokens_per_second()},
          {"requests_per_s", step.throughput()},
          {"goodput",
           {{"deadline_s", DeadlineJson(step.deadline)},
            {"in_time", measured.in_time},
            {"requests_per_s", step.goodput()},
            {"share", step.in_time_share()}}},
          {"latency_ms", Object(LatencyRow(measured.latency))},
          {"ok_mean_ms", Mean(Milliseconds(measured.ok_latency), measured.ok)},
          {"histogram_ms", HistogramJson(measured.latency)},
          {"send_lag_ms",
           {{"p50", Milliseconds(measured.send_lag.Percentile(50))},
            {"p99", Milliseconds(measured.send_lag.Percentile(99))},
            {"max", Milliseconds(measured.send_lag.max())}}},
          {"late_share", step.late_share()},
          {"server_ms",
           {{"queue", Mean(Milliseconds(measured.queue), measured.ok)},
            {"copy", Mean(Milliseconds(measured.copy), measured.ok)},
            {"compute", Mean(Milliseconds(measured.compute), measured.ok)}}},
          {"batch",
           {{"tokens", Mean(measured.batch_tokens, measured.ok)},
            {"requests", Mean(measured.batch_requests, measured.ok)}}},
          {"seconds", SecondsJson(step.seconds, step.elapsed)}};
}

Json SearchJson(const FoundRate& search) {
  return {{"objectives", search.objectives},
          {"width", search.width},
          {"capacity_per_s", search.capacity},
          {"rate", search.found},
          {"failed_rate", OptionalJson(search.failed)},
          {"converged", search.converged}};
}

}  // namespace

JsonValue ReportJson(const LoadReport& report) {
  Json document = {{"run", RunJson(report.run)},
                   {"plan", Object(report.plan)},
                   {"interrupted", report.interrupted}};
  if (report.search) document["search"] = SearchJson(*report.search);
  document["steps"] = Json::array();
  for (const StepResult& step : report.steps) document["steps"].push_back(StepJson(step));
  if (report.metrics) document["metrics"] = **report.metrics;
  return document;
}

}  // namespace attendant::client
