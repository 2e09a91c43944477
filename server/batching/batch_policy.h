// The batching policy: a pure function of the queue and the time that decides which slices of
// queued jobs run together next, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/job.h"

namespace attendant::server {

struct BatchLimits {
  int64_t max_batch_tokens = 1024;  // a larger slice runs in a batch of its own
  // Predicted time of a batch; a slice that takes longer runs by itself. Batches may be longer if
  // their fixed cost is high, for example to read the weights; see BatchSeconds.
  absl::Duration max_batch_seconds = absl::Milliseconds(25);
  // How long a batch that is not full may wait for further jobs.
  absl::Duration max_queue_delay = absl::ZeroDuration();
  int instances = 1;  // batches computed at the same time
};

// Waiting jobs, with their total tokens and predicted seconds on one instance. Parts of a job that
// were handed out do not count.
struct QueueCounts {
  int64_t jobs = 0;
  int64_t tokens = 0;
  double seconds = 0;

  void Add(const QueueCounts& more);
  // Rounding errors do not accumulate: seconds become 0 when no job is left.
  void Remove(const QueueCounts& part);
};

// A waiting job. The policy reads the members up to `overhead`.
struct QueuedJob {
  BatchKey key;
  size_t peer = 0;  // index into `served` of ChooseBatch
  absl::Time enqueued;
  absl::Time deadline = absl::InfiniteFuture();
  absl::Span<const JobSlice> slices;  // the waiting ones, at least one
  // Predicted seconds of work, divided over all instances, that were in the queue when the job
  // arrived.
  double ahead = 0;
  double taken = 0;     // predicted seconds of earlier slices
  double overhead = 0;  // see Job

  std::shared_ptr<Job> job = nullptr;
  QueueCounts waiting = {};    // all of `slices` together
  int64_t first_sequence = 0;  // of the slices
};

enum class BatchClose {
  kQueueEmpty,  // no further compatible work was waiting
  kTokens,
  kSeconds,
  kDeadline,  // a further slice would have made a member late
};

// "queue_empty", "tokens", "seconds", "deadline".
const char* Name(BatchClose close);

struct BatchChoice {
  // For each job, how many of its first slices are in the batch; empty if there is nothing to run
  // yet.
  std::vector<size_t> take;
  size_t leader = 0;   // the job for which the batch was formed
  double seconds = 0;  // predicted, including the overhead
  BatchClose close = BatchClose::kQueueEmpty;
  // If `take` is empty, when to ask again unless a job arrives earlier.
  absl::Time wait_until = absl::InfiniteFuture();
};

// Returns how long after its arrival a job's first `seconds` are due, if `ahead` seconds of work
// were in the queue at that time. This is the smaller of:
// - eight times `seconds`, so that small jobs are due before large ones;
// - twice the completion time under first-come, first-served, so that a large job waits for later
//   small ones, but not forever.
absl::Duration DueAfter(double seconds, double ahead);

// Returns when the next `seconds` of the job are due: after DueAfter, but no later than its
// deadline.
absl::Time DueTime(const QueuedJob& job, double seconds);

// Returns the predicted seconds of slices at which a batch is full: max_batch_seconds, but at least
// eight times `overhead`, so that every full batch spends most of its time on rows.
double BatchSeconds(const BatchLimits& limits, double overhead);

// Chooses the next batch of `jobs`, which are in order of arrival. `served` has the predicted
// seconds of service that each peer has received, on a scale common to all peers.
//
// The peer that has received the least service leads, with its slice that is due first. Slices of
// jobs with the same key join by the same rule, and count as service for their peers, while the
// batch stays within its token and time limits and no member becomes late; slices that do not fit
// are skipped. A batch is full when it reaches a limit or had to skip a slice. Otherwise it waits
// for further jobs until a member has waited max_queue_delay or half of the time to its deadline,
// whichever comes first.
BatchChoice ChooseBatch(absl::Span<const QueuedJob> jobs, absl::Span<const double> served,
                        absl::Time now, const BatchLimits& limits);

}  // namespace attendant::server
