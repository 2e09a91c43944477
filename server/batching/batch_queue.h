// The queue of admitted jobs, from which all instances take batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/batching/batch_policy.h"
#include "server/batching/job.h"
#include "server/batching/waiting_jobs.h"

namespace attendant::server {

// Thread-safe. The queue is open until Close; after that it accepts no jobs, and Take drains the
// remaining ones.
//
// Invariants:
// - A job that would exceed a limit, or the share of its peer or its model (WaitingJobs), is
//   refused by Submit, unless it is patient; an accepted job is never dropped to make room.
// - Every sequence of an accepted job leaves exactly once: in a batch from Take, or when the rest
//   of the job fails. Each job fails at most once.
// - An expired job is failed and never handed out. A job expires when its deadline has passed or
//   cannot be met (DEADLINE_EXCEEDED), or when its client disconnects (CANCELLED). Every Take and
//   FailExpired removes expired jobs, and so does a Submit that needs their space.
// - ChooseBatch defines the order: no peer, key or size starves.
// - If max_queue_delay is zero, no job waits while a thread is blocked in Take.
// - Jobs fail and are destroyed without the lock, so that they may call the queue.
class BatchQueue {
 public:
  // `clock` must outlive the queue.
  BatchQueue(Clock& clock, QueueLimits queue_limits, BatchLimits batch_limits)
      : clock_(clock), waiting_(queue_limits, batch_limits) {}

  // Fails waiting jobs with UNAVAILABLE. No other call may be in progress.
  ~BatchQueue();

  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // On error, the caller remains responsible for `job`, which has not been failed. Errors are
  // RESOURCE_EXHAUSTED with the exhausted limit or share, UNAVAILABLE if the queue is closed,
  // DEADLINE_EXCEEDED if the deadline has passed or cannot be met, CANCELLED if the client has
  // disconnected, and INVALID_ARGUMENT if the job has more tokens than the queue can ever hold.
  // RESOURCE_EXHAUSTED and unmeetable deadlines have a reason (server/metrics/refusal.h). The job's
  // numbers must not be negative. Throws std::bad_alloc without adding the job.
  absl::Status Submit(std::shared_ptr<Job> job);

  // Returns the result that Submit would have now for another job of this deadline that is like the
  // peer's smallest waiting one; OK if the peer has none. Used to refuse a client before receiving
  // its request, when the size is unknown.
  absl::Status CheckAnother(const std::string& peer, absl::Time deadline) const;

  // Returns whether this peer has less than its share of the queue waiting (WaitingJobs). A stream,
  // with patient jobs, reads its next item only then.
  bool TakesMoreOf(const std::string& peer) const;

  // Waits for a batch. Returns a batch without entries once the queue is closed and empty. Without
  // memory for a batch, the jobs keep waiting until there is some.
  Batch Take();

  // Fails expired jobs, to free their space at once. Call when a client disconnects, without any
  // lock that Job::Fail takes.
  void FailExpired();

  // Refuses further jobs. Take hands out the queued ones without waiting for max_queue_delay.
  void Close();

  // Fails every waiting job with `status`.
  void FailAll(const absl::Status& status);

  QueueCounts counts() const;

  // Returns the predicted time until all waiting and running work is computed.
  absl::Duration Backlog() const;

 private:
  // Inspects the queue once. Returns true if Take is done: `batch` has entries, or is empty because
  // the queue is closed and empty. Returns false if Take must try again; this call has then waited
  // for a change, unless it returns jobs in `removed`, which the caller fails first.
  bool TryTake(Batch& batch, std::vector<RemovedJob>& removed);
  void Pause();

  Clock& clock_;
  // Created in advance because a destructor must not throw.
  const absl::Status closed_error_ = absl::UnavailableError("the server is shutting down");
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  WaitingJobs waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
