// Job, a request as the queue and the batching policy see it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant::server {

// Only jobs with equal keys may be computed in the same batch.
struct BatchKey {
  const void* model = nullptr;  // identity of the served model; never dereferenced
  int32_t operation = 0;        // the computation, numbered by the code that makes jobs
  int64_t first_layer = 0;
  int64_t layers = 0;

  bool operator==(const BatchKey&) const = default;
};

// Consecutive sequences of a job that are computed in one batch.
struct JobSlice {
  int64_t sequences = 1;
  int64_t tokens = 0;  // counted against batch and queue limits
  double seconds = 0;  // predicted, excluding the fixed cost of a batch
};

// Members are set before Submit and constant from then on, unless stated otherwise.
class Job {
 public:
  virtual ~Job() = default;

  // Completes the request with an error unless it is complete. Thread-safe, also while slices of
  // the job are being computed.
  virtual void Fail(const absl::Status& status) = 0;

  BatchKey key;
  std::string peer;                              // the client, for fair shares
  int64_t tokens = 0;                            // kept tokens; 0 is valid (everything is masked)
  absl::Time deadline = absl::InfiniteFuture();  // the queue sets a default
  std::vector<JobSlice> slices;                  // in order; empty: one slice of unknown duration
  double overhead = 0;                           // predicted fixed seconds of a batch with this key
  // Queued even if the queue is full, because the client sends its next job only afterwards.
  bool patient = false;
  // True once the client disconnects. May be null.
  std::shared_ptr<const std::atomic<bool>> cancelled;

  // Set once a slice of the job has failed; the others are no longer needed. Thread-safe.
  std::atomic<bool> failed = false;

  // Set by the queue.
  absl::Time enqueued;
};

// Returns OK unless the job is cancelled (CANCELLED), has failed (CANCELLED) or is past its
// deadline (DEADLINE_EXCEEDED). Thread-safe.
absl::Status CheckAwaited(const Job& job, absl::Time now);

}  // namespace attendant::server
