// LatencyRow, the figures of a latency that every form of the report has.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/load_test/histogram.h"

namespace attendant::client {

// Returns mean, percentiles and maximum with their names, in milliseconds.
std::vector<std::pair<std::string, double>> LatencyRow(const Histogram& latency);

// Returns the mean of `count` values, 0 of none.
template <typename Number>
double Mean(Number sum, int64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

}  // namespace attendant::client
