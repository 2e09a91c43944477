// Job: a request in the queue, as seen by the queue and the batching policy.
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

// Consecutive sequences of a job, which are computed in one batch.
struct JobSlice {
  int64_t sequences = 1;
  int64_t tokens = 0;  // that count towards the bounds of batches and of the queue
  double seconds = 0;  // predicted, without what a batch takes whatever is in it
};

// The members are set before Submit and constant from then on, except as stated.
class Job {
 public:
  virtual ~Job() = default;

  // Completes the request with an error, unless it is complete. Any thread, also while slices of
  // the job are computed.
  virtual void Fail(const absl::Status& status) = 0;

  BatchKey key;
  std::string peer;    // the client, which shares the server fairly with the others
  int64_t tokens = 0;  // kept tokens; 0 is valid (everything is masked)
  absl::Time deadline = absl::InfiniteFuture();  // the queue gives jobs without one one of its own
  std::vector<JobSlice> slices;  // all sequences in order; empty: one slice of unknown duration
  double overhead = 0;           // predicted seconds of a batch with this key whatever is in it
  // It is queued even when the queue is full, because its client sends the next one only then.
  bool patient = false;
  std::shared_ptr<const std::atomic<bool>> cancelled;  // true once the client is gone; or null

  // Set once a slice of the job has failed: the others are not wanted any more. Any thread.
  std::atomic<bool> failed = false;

  // Set by the queue.
  absl::Time enqueued;
};

// Returns OK unless the job is cancelled (CANCELLED), has failed (CANCELLED) or is past its
// deadline (DEADLINE_EXCEEDED). Any thread.
absl::Status CheckAwaited(const Job& job, absl::Time now);

}  // namespace attendant::server
