// Counts what became of the requests.
#pragma once

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load_test/histogram.h"
#include "client/messages.h"

namespace attendant::client {

// The times of a request's life.
struct RequestTimes {
  absl::Time intended;  // when it was due
  absl::Time sent;
  absl::Time answered;
};

struct Statistics {
  int64_t ok = 0;
  std::map<absl::StatusCode, int64_t> errors;
  int64_t tokens = 0;  // kept ones, of answered requests
  // Times of answered requests. Latency starts at the intended time: a generator or a server that
  // falls behind shows in it.
  Histogram latency;
  Histogram send_lag;  // sent after the intended time by this much; of all requests
  absl::Duration queue;
  absl::Duration copy;
  absl::Duration compute;
  int64_t batch_tokens = 0;
  int64_t batch_requests = 0;
  absl::Time last_answer = absl::InfinitePast();

  int64_t error_count() const;
  void Merge(const Statistics& other);
};

// Thread-safe.
class Recorder {
 public:
  void Record(const RequestTimes& times, int64_t tokens, const absl::StatusOr<Execution>& answer);

  // A request of the warm-up: counted, not measured.
  void RecordWarmup();

  // What was recorded since the last call.
  Statistics TakeInterval();
  // All that was recorded.
  Statistics Total() const;
  int64_t warmup_requests() const;

 private:
  mutable absl::Mutex mutex_;
  Statistics interval_ ABSL_GUARDED_BY(mutex_);
  Statistics before_ ABSL_GUARDED_BY(mutex_);
  int64_t warmup_requests_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant::client
