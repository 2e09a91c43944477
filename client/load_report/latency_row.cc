#include "client/load_report/latency_row.h"

namespace attendant::client {
namespace {

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}};

}  // namespace

std::vector<std::pair<std::string, double>> LatencyRow(const Histogram& latency) {
  std::vector<std::pair<std::string, double>> row = {
      {"mean", absl::ToDoubleMilliseconds(latency.mean())}};
  for (const auto& [name, percent] : kPercentiles) {
    row.emplace_back(name, absl::ToDoubleMilliseconds(latency.Percentile(percent)));
  }
  row.emplace_back("max", absl::ToDoubleMilliseconds(latency.max()));
  return row;
}

}  // namespace attendant::client
