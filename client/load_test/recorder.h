// Recorder, which counts the outcomes of requests and their times.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load_test/histogram.h"
#include "client/load_test/request_times.h"
#include "client/load_test/timeline.h"
#include "client/messages.h"

namespace attendant::client {

// The outcomes of a set of requests.
struct Statistics {
  int64_t ok = 0;
  std::map<absl::StatusCode, int64_t> errors;
  absl::Status first_error;  // OK if there is none
  int64_t in_time = 0;       // of the ok ones, those that were answered within the deadline
  int64_t tokens = 0;        // kept tokens of answered requests
  // The times of all requests from the intended time to their end, so that it shows when the
  // generator or the server falls behind. A failed request counts with the time until it failed:
  // left out, the slowest ones would be missing wherever there is a deadline.
  Histogram latency;
  Histogram send_lag;  // from the intended time to the sending, of all requests
  // Sums over the ok ones.
  absl::Duration ok_latency;
  absl::Duration queue;
  absl::Duration copy;
  absl::Duration compute;
  int64_t batch_tokens = 0;
  int64_t batch_requests = 0;
  absl::Time last_answer = absl::InfinitePast();

  int64_t error_count() const;
  void Merge(const Statistics& other);
};

// Collects the outcomes. Thread-safe.
class Recorder {
 public:
  // A response is in time if it arrives within `deadline` of the intended time.
  explicit Recorder(absl::Duration deadline = absl::InfiniteDuration()) : deadline_(deadline) {}

  // Sets the start of the measurement and of Seconds().
  void Begin(absl::Time start);

  // `tokens` is the number of kept tokens of the request.
  void Record(const RequestTimes& times, int64_t tokens, const absl::StatusOr<Execution>& answer);

  // Counts a request of the warm-up, which is not measured.
  void RecordWarmup();

  // Returns the outcomes since the last call.
  Statistics TakeInterval();
  // Returns everything that has been recorded.
  Statistics Total() const;
  int64_t warmup_requests() const;
  // Returns the outcomes second by second; nothing without Begin.
  std::vector<SecondOfLoad> Seconds() const;

 private:
  const absl::Duration deadline_;
  mutable absl::Mutex mutex_;
  Statistics interval_ ABSL_GUARDED_BY(mutex_);
  Statistics before_ ABSL_GUARDED_BY(mutex_);
  Timeline timeline_ ABSL_GUARDED_BY(mutex_);
  int64_t warmup_requests_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant::client
