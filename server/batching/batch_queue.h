// The queue of admitted jobs, from which all instances take their batches.
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

// Thread-safe. The queue is open until Close. From then on it accepts no job and hands out what it
// still holds; it never opens again.
//
// Invariants:
// - A job that would exceed a limit, or the share of its peer or its model (WaitingJobs), is
//   refused by Submit, unless it is patient; an accepted job is never dropped to make room.
// - Every sequence of an accepted job leaves exactly once: in a batch from Take, or with the rest
//   of the job when that is failed. Each job is failed at most once.
// - An expired job, whose deadline has passed or cannot be met (DEADLINE_EXCEEDED) or whose client
//   is gone (CANCELLED), is failed and never handed out. Every Take and FailExpired looks for such
//   jobs, and so does a Submit that needs their room.
// - The order is that of ChooseBatch: no peer, no key and no size starves.
// - If max_queue_delay is zero, no job waits while a thread is blocked in Take.
// - Jobs are failed and destroyed without the lock, so they may call the queue.
class BatchQueue {
 public:
  // `clock` must outlive the queue.
  BatchQueue(Clock& clock, QueueLimits queue_limits, BatchLimits batch_limits)
      : clock_(clock), waiting_(queue_limits, batch_limits) {}

  // Fails the jobs that still wait with UNAVAILABLE. No other call may be in progress.
  ~BatchQueue();

  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // If this returns an error, it has not failed `job`, whose client has to be answered:
  // RESOURCE_EXHAUSTED names the limit or the share that is reached, UNAVAILABLE means that the
  // queue is closed, DEADLINE_EXCEEDED that the job's deadline has passed or cannot be met,
  // CANCELLED that its client is gone, INVALID_ARGUMENT that it has more tokens than may ever wait.
  // RESOURCE_EXHAUSTED and a deadline that cannot be met have a reason (server/metrics/refusal.h).
  // The job's numbers must not be negative. Throws std::bad_alloc if there is no memory for the
  // job, which then is not in the queue.
  absl::Status Submit(std::shared_ptr<Job> job);

  // Returns what Submit would say now to another job like the smallest that this peer has waiting,
  // with this deadline; OK if the peer has none. For refusing a client whose request has not been
  // received yet, so that its size is not known.
  absl::Status CheckAnother(const std::string& peer, absl::Time deadline) const;

  // Returns whether this peer has less waiting than its part of the queue (WaitingJobs). A
  // stream, whose jobs are patient, reads its next item only if so.
  bool TakesMoreOf(const std::string& peer) const;

  // Waits for a batch. Returns one without entries once the queue is closed and holds nothing more.
  // If there is no memory for it, the jobs go on waiting until there is.
  Batch Take();

  // Fails the expired jobs, so that their room is free at once. To be called when a client has
  // gone, without a lock that Job::Fail takes.
  void FailExpired();

  // Refuses further jobs. Take hands out the queued ones without waiting for max_queue_delay.
  void Close();

  // Fails every job that still waits with `status`.
  void FailAll(const absl::Status& status);

  QueueCounts counts() const;

  // Returns the predicted time until all that waits and runs now has been computed.
  absl::Duration Backlog() const;

 private:
  // Looks at the queue once. Returns true if Take is done: `batch` has entries, or is empty because
  // the queue is closed and empty. Returns false if Take has to look again; in that case this call
  // has waited for a change, unless it returns jobs in `removed`, which are to be failed first.
  bool TryTake(Batch& batch, std::vector<RemovedJob>& removed);
  void Pause();

  Clock& clock_;
  // Made in advance, since a destructor may not throw.
  const absl::Status closed_error_ = absl::UnavailableError("the server is shutting down");
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  WaitingJobs waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
