// Gauges, the series whose values are read at each scrape.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

namespace attendant::server {

// Not thread-safe.
class Gauges {
 public:
  using Labels = std::map<std::string, std::string>;

  // Adds a series. Those with the same name must have the same help.
  template <typename Number>
  void Add(const std::string& name, const std::string& help, Number value,
           const Labels& labels = {}) {
    Append({name, help, prometheus::MetricType::Gauge, {}}, static_cast<double>(value), labels);
  }
  // Adds a counter whose total is kept elsewhere.
  template <typename Number>
  void AddTotal(const std::string& name, const std::string& help, Number value,
                const Labels& labels = {}) {
    Append({name, help, prometheus::MetricType::Counter, {}}, static_cast<double>(value), labels);
  }

  const std::vector<prometheus::MetricFamily>& families() const { return families_; }

 private:
  void Append(prometheus::MetricFamily family, double value, const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace attendant::server
