// Timeline, the outcomes of requests second by second.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/load_test/histogram.h"
#include "client/load_test/request_times.h"
#include "client/messages.h"

namespace attendant::client {

// One second of a step. The durations are of the requests that were answered in it.
struct SecondOfLoad {
  int64_t sent = 0;
  int64_t ok = 0;
  std::map<absl::StatusCode, int64_t> errors;
  absl::Duration p50;  // of all that ended, failed ones too, from the intended time
  absl::Duration p99;
  absl::Duration queue;  // sums over the ok ones
  absl::Duration copy;
  absl::Duration compute;
  int64_t batch_requests = 0;
};

// Not thread-safe.
class Timeline {
 public:
  // Sets the time from which seconds count. Until then, nothing is recorded.
  void Begin(absl::Time start) { start_ = start; }

  // A response counts in the second in which it arrived, or in the current second if that is later.
  void Record(const RequestTimes& times, const absl::StatusOr<Execution>& answer);

  // Returns all seconds from the first to the second of the last response.
  std::vector<SecondOfLoad> Seconds() const;

 private:
  // Returns the number of the second that `time` is in, which is then there.
  size_t SecondOf(absl::Time time);
  void FinishCurrent();

  absl::Time start_ = absl::InfiniteFuture();
  std::vector<SecondOfLoad> seconds_;
  size_t current_ = 0;  // the second that `latency_` is of
  Histogram latency_;
};

}  // namespace attendant::client
