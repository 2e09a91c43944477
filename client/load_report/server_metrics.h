// ServerMetrics, the metrics of a server before and after a load test.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/json/json_value.h"

namespace attendant::client {

// The values of all series at one time, by name with labels: `requests_total{code="OK"}`.
struct MetricsSample {
  std::map<std::string, double> counters;  // including histograms and summaries
  std::map<std::string, double> gauges;    // and series without a type
};

// Parses the text format of Prometheus. Non-numeric values are omitted. INVALID_ARGUMENT: a line is
// neither a comment nor a sample.
absl::StatusOr<MetricsSample> ParseMetrics(const std::string& text);

// Where metrics come from.
struct MetricsSource {
  std::string url;      // http or https
  std::string ca = {};  // PEM certificates that may have signed the server's; empty: the system's
  std::string certificate = {};  // client certificate, in PEM; empty: none
  std::string key = {};          // its private key
  std::string token = {};        // the bearer token to send; empty: none
};

// UNAVAILABLE: there is no answer in time, or it is no 200. INVALID_ARGUMENT: it has no metrics.
absl::StatusOr<MetricsSample> FetchMetrics(const MetricsSource& source, absl::Duration timeout);

// Returns {url, counters: {series: difference}, gauges: {series: [before, after]}}. A series that
// was not there before began at 0.
JsonValue MetricsJson(const std::string& url, const MetricsSample& before,
                      const MetricsSample& after);

}  // namespace attendant::client
