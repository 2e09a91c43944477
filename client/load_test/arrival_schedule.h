// ArrivalSchedule, the send times of an open loop.
#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace attendant::client {

// The distribution of the times between requests.
enum class Arrival { kConstant, kPoisson };

// Send times of `rate` requests a second: at even intervals, or independent of each other
// (exponential intervals, the same for the same seed). Does not drift. Not thread-safe.
class ArrivalSchedule {
 public:
  // `rate` must be above 0.
  ArrivalSchedule(Arrival arrival, double rate, uint64_t seed);

  // Returns when to send the next request, as the time since the start. Never decreases; the first
  // is 0.
  absl::Duration Next();

 private:
  Arrival arrival_;
  double rate_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  int64_t sent_ = 0;
  double seconds_ = 0;
};

}  // namespace attendant::client
