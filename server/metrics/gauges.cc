#include "server/metrics/gauges.h"

#include <algorithm>
#include <utility>

namespace attendant::server {

void Gauges::Append(prometheus::MetricFamily family, double value, const Labels& labels) {
  prometheus::ClientMetric series;
  for (const auto& [name, text] : labels) series.label.push_back({name, text});
  series.gauge.value = series.counter.value = value;
  auto found = std::find_if(families_.begin(), families_.end(),
                            [&](const auto& known) { return known.name == family.name; });
  if (found == families_.end()) found = families_.insert(found, std::move(family));
  found->metric.push_back(std::move(series));
}

}  // namespace attendant::server
