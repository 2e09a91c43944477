// JobInfo: what the queue knows of an admitted request.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant::server {

enum class JobKind : int8_t { kCompute, kRegistration };

// Only jobs with equal keys may be computed in the same batch.
struct BatchKey {
  const void* model = nullptr;  // identity of the served model; never dereferenced
  JobKind kind = JobKind::kCompute;
  int32_t operation = 0;  // the computation, numbered by the code that makes jobs of this kind
  int64_t first_layer = 0;
  int64_t layers = 0;

  bool operator==(const BatchKey&) const = default;
};

// Consecutive sequences of a job, which are computed in one batch.
struct Slice {
  int64_t sequences = 1;
  int64_t tokens = 0;  // that count towards the bounds of batches and of the queue
  double seconds = 0;  // predicted, without what a batch takes whatever is in it
};

struct JobInfo {
  // Set before Submit and constant from then on, but for the deadline.
  BatchKey key;
  std::string peer;    // the caller, who shares the server fairly with the others
  int64_t tokens = 0;  // kept tokens; 0 is valid (everything is masked)
  absl::Time deadline = absl::InfiniteFuture();  // the queue gives jobs without one one of its own
  std::vector<Slice> slices;  // all sequences in order; empty: one slice of unknown duration
  double overhead = 0;        // predicted seconds of a batch with this key whatever is in it
  // It is queued even where there is no room, as its caller brings the next one only then.
  bool patient = false;
  std::shared_ptr<const std::atomic<bool>> cancelled;  // true once the caller is gone; or null

  // Set once a part of the job has failed, after which the rest is not wanted. Any thread.
  std::atomic<bool> failed = false;

  // Set by the queue.
  absl::Time enqueued;
};

// Returns OK while somebody waits for the job, otherwise CANCELLED or DEADLINE_EXCEEDED. Any
// thread.
absl::Status CheckAwaited(const JobInfo& job, absl::Time now);

}  // namespace attendant::server
