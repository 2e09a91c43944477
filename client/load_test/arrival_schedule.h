// ArrivalSchedule, the send times of an open loop.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace attendant::client {

// The distribution of the times between requests.
enum class Arrival { kConstant, kPoisson };

// Send times: of a recording, or of `rate` requests a second: at even intervals, or independent of
// each other (exponential intervals, the same for the same seed). Does not drift. Not thread-safe.
class ArrivalSchedule {
 public:
  // `rate` must be above 0.
  ArrivalSchedule(Arrival arrival, double rate, uint64_t seed);
  // A replay of recorded times in seconds, which begin at 0 and do not decrease, `speed` times as
  // fast as they were.
  ArrivalSchedule(std::shared_ptr<const std::vector<double>> times, double speed);

  // Returns when to send the next request, as the time since the start. Never decreases; the first
  // is 0. Infinite after the last one of a replay.
  absl::Duration Next();

 private:
  std::shared_ptr<const std::vector<double>> times_;  // of a replay; otherwise null
  Arrival arrival_ = Arrival::kConstant;
  double rate_;  // of a replay, its speed
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  int64_t sent_ = 0;
  double seconds_ = 0;
};

}  // namespace attendant::client
