// The batching policy: decides which slices of queued jobs are computed together next, and when. It
// is a pure function of the queue and the time.
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
  int64_t max_batch_tokens = 1024;  // a slice with more tokens runs in a batch of its own
  // Predicted time of a batch. Slices that take longer run alone. Where a batch takes much time
  // whatever is in it, such as for reading the weights, batches may be longer; see BatchSeconds.
  absl::Duration max_batch_seconds = absl::Milliseconds(25);
  // The time that a batch which is not full may wait for further jobs.
  absl::Duration max_queue_delay = absl::ZeroDuration();
  int instances = 1;  // batches that are computed at the same time
};

// Jobs that wait now, with their tokens and predicted seconds of one instance in total. If
// a part of a job has been handed out, only the rest of the job counts.
struct QueueCounts {
  int64_t jobs = 0;
  int64_t tokens = 0;
  double seconds = 0;

  void Add(const QueueCounts& more);
  // Rounding errors of sums do not add up for ever: where no job is left, there are 0 seconds.
  void Remove(const QueueCounts& part);
};

// A job that waits. The policy looks at the members down to `overhead`.
struct QueuedJob {
  BatchKey key;
  size_t peer = 0;  // index into Queue::served
  absl::Time enqueued;
  absl::Time deadline = absl::InfiniteFuture();
  absl::Span<const JobSlice> slices;  // those that still wait, at least one
  // Predicted seconds of work, shared by all instances, that were in the queue when the job
  // arrived.
  double ahead = 0;
  double taken = 0;     // predicted seconds of the slices before these
  double overhead = 0;  // as in Job

  std::shared_ptr<Job> job = nullptr;
  QueueCounts waiting = {};    // the slices together
  int64_t first_sequence = 0;  // of the slices
};

struct Queue {
  absl::Span<const QueuedJob> jobs;  // in order of arrival
  // The predicted seconds that each peer has been served, on a scale on which peers can be
  // compared.
  absl::Span<const double> served;
};

enum class BatchClose {
  kQueueEmpty,  // nothing more waited that could be computed together with the rest
  kTokens,
  kSeconds,
  kDeadline,  // more company would have made a member late
};

// "queue_empty", "tokens", "seconds", "deadline".
const char* Name(BatchClose close);

struct BatchChoice {
  // For each job, how many of its first slices are in the batch; empty: there is nothing to run
  // yet.
  std::vector<size_t> take;
  size_t leader = 0;   // the job that the batch was made for
  double seconds = 0;  // predicted, with the overhead
  BatchClose close = BatchClose::kQueueEmpty;
  // If `take` is empty: the time at which to ask again, unless a job arrives earlier.
  absl::Time wait_until = absl::InfiniteFuture();
};

// Returns how long after its arrival a job's first `seconds` are due, if `ahead` seconds of work
// were in the queue at that time, whichever is less:
// - eight times `seconds`, so that small jobs are due before large ones;
// - twice the time after which they would be done if first come were first served, so that a large
//   job waits for small ones that came later, but not for ever.
absl::Duration DueAfter(double seconds, double ahead);

// Returns the time at which the next `seconds` of the job are due: after DueAfter, but not after
// its deadline.
absl::Time DueTime(const QueuedJob& job, double seconds);

// Returns the predicted seconds of slices after which a batch is full: max_batch_seconds, but at
// least eight times `overhead`, so that most of the time of every full batch goes into rows.
double BatchSeconds(const BatchLimits& limits, double overhead);

// Chooses the next batch.
//
// The peer that was served least leads with its slice that is due first. Slices of jobs with the
// same key join by the same rule, each counted as service for its peer, while the batch stays
// within its tokens and seconds and no member becomes late; those that do not fit are skipped. A
// batch is full when one of its bounds is reached or when a slice had to be skipped. A batch that
// is not full waits for further jobs until one of them has waited max_queue_delay or has used up
// half of the time to its deadline, whichever comes first.
BatchChoice ChooseBatch(const Queue& queue, absl::Time now, const BatchLimits& limits);

}  // namespace attendant::server
