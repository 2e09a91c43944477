// The batching policy: decides which queued jobs are computed together next, and when. It is a pure
// function of the queue and the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/job.h"

namespace attendant::server {

struct BatchLimits {
  int64_t max_batch_tokens = 1024;  // a job with more tokens runs in a batch of its own
  // The time that a batch which is not full may wait for further jobs.
  absl::Duration max_queue_delay = absl::ZeroDuration();
};

// The properties of a queued job that the policy may look at.
struct QueuedJob {
  BatchKey key;
  int64_t tokens;  // not negative
  absl::Time enqueued;
  absl::Time deadline = absl::InfiniteFuture();
};

struct BatchChoice {
  // Ascending indices into the queue; empty: there is nothing to run yet.
  std::vector<size_t> take;
  // If `take` is empty: the time at which to ask again, unless a job arrives earlier.
  absl::Time wait_until = absl::InfiniteFuture();
};

// Chooses the next batch from `queue`, which must be in order of arrival.
//
// The oldest job leads the batch, so no key and no size starves. Jobs with the same key join it in
// order of arrival while the batch stays within max_batch_tokens; those that do not fit are
// skipped. A batch is full when it has max_batch_tokens or when a job had to be skipped. A batch
// that is not full waits for further jobs until its leader has waited max_queue_delay, but no
// longer than until the first of its jobs has used up half of the time to its deadline.
BatchChoice ChooseBatch(absl::Span<const QueuedJob> queue, absl::Time now,
                        const BatchLimits& limits);

}  // namespace attendant::server
