// The queue of admitted jobs, from which all instances take their batches.
#pragma once

#include <cstdint>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/batching/batch_policy.h"
#include "server/batching/job.h"
#include "server/batching/waiting_jobs.h"

namespace attendant::server {

// Some sequences of a job, of which all are computed in one batch.
template <typename T>
struct Piece {
  T job;
  int64_t first_sequence = 0;
  int64_t sequences = 1;
};

// Pieces whose jobs have the same key, in order of arrival.
template <typename T>
struct Batch {
  std::vector<Piece<T>> pieces;
  BatchClose close = BatchClose::kQueueEmpty;
  bool waited_for = true;  // its instance was idle before it
};

// Thread-safe. The queue is open until Close. From then on it accepts no job and hands out what it
// still holds; it never opens again.
//
// T is a handle to a job, cheap to copy, with `JobInfo& info() const`, the same object for all
// copies, and `void Fail(const absl::Status&) const`, which answers the request with an error, on
// any thread, and may be called while other pieces of the job are computed.
//
// Invariants:
// - A job that would exceed a limit, or the share of its peer or its model (WaitingJobs), is
//   refused by Submit, unless it is patient; an accepted job is never dropped to make room.
// - Every sequence of an accepted job leaves exactly once: in a batch from Take, or with the rest
//   of the job when that is failed. Each job is failed at most once.
// - A job whose deadline has passed or cannot be met (DEADLINE_EXCEEDED) or whose caller is gone
//   (CANCELLED) is failed and never handed out. Every Take and FailDead looks for such jobs, and so
//   does a Submit that needs their room.
// - The order is that of ChooseBatch: no peer, no key and no size starves.
// - If max_queue_delay is zero, no job waits while a thread is blocked in Take.
// - Jobs are failed and destroyed without the lock, so they may call the queue.
template <typename T>
class BatchQueue {
 public:
  // `clock` must outlive the queue.
  BatchQueue(Clock& clock, QueueLimits queue_limits, BatchLimits batch_limits)
      : clock_(clock), waiting_(queue_limits, batch_limits) {}

  // Fails the jobs that still wait with UNAVAILABLE. No other call may be in progress.
  ~BatchQueue() {
    Close();
    FailAll(closed_error_);
  }

  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // If this returns an error, it has not failed `job`, whose caller has to be answered:
  // RESOURCE_EXHAUSTED names the limit or the share that is reached, UNAVAILABLE means that the
  // queue is closed, DEADLINE_EXCEEDED that the job's deadline has passed or cannot be met,
  // CANCELLED that its caller is gone, INVALID_ARGUMENT that it has more tokens than may ever wait.
  // RESOURCE_EXHAUSTED and a deadline that cannot be met have a reason (server/metrics/refusal.h).
  // The numbers in the job's info must not be negative. Throws std::bad_alloc if there is no memory
  // for the job, which then is not in the queue.
  absl::Status Submit(T job) {
    Failed failed;
    absl::Status status;
    try {
      status = TryAdd(job, failed);
    } catch (const std::bad_alloc&) {
      FailEach(failed);
      throw;
    }
    FailEach(failed);
    return status;
  }

  // Returns what Submit would say now to another job like the smallest that this peer has waiting,
  // with this deadline; OK if the peer has none. For refusing a caller whose request has not been
  // received yet, so that its size is not known.
  absl::Status CheckAnother(const std::string& peer, absl::Time deadline) const {
    absl::MutexLock lock(&mutex_);
    return waiting_.CheckAnother(peer, deadline, clock_.Now());
  }

  // Returns whether this peer has less waiting than its part of the queue (WaitingJobs). A
  // stream, whose jobs are patient, reads its next item only if so.
  bool TakesMoreOf(const std::string& peer) const {
    absl::MutexLock lock(&mutex_);
    return waiting_.TakesMoreOf(peer);
  }

  // Waits for a batch. Returns one without pieces once the queue is closed and holds nothing more.
  // If there is no memory for it, the jobs go on waiting until there is.
  Batch<T> Take() {
    Batch<T> batch;
    batch.waited_for = false;
    while (true) {
      Failed failed;
      bool done = false, starved = false;
      try {
        done = TryTake(batch, failed);
      } catch (const std::bad_alloc&) {
        starved = true;
      }
      FailEach(failed);
      if (done) return batch;
      if (starved) Pause();
    }
  }

  // Fails the jobs for which nobody waits, so that their room is free at once. To be called when a
  // caller has gone, without a lock that Fail takes.
  void FailDead() {
    Failed failed;
    {
      absl::MutexLock lock(&mutex_);
      failed = RemoveDead(waiting_.RemoveDead(clock_.Now()));
    }
    FailEach(failed);
  }

  // Refuses further jobs. Take hands out the queued ones without waiting for max_queue_delay.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    changed_.SignalAll();
  }

  // Fails every job that still waits with `status`.
  void FailAll(const absl::Status& status) {
    std::map<uint64_t, T> all;
    {
      absl::MutexLock lock(&mutex_);
      waiting_.Clear();
      all.swap(jobs_);
    }
    for (auto& [id, job] : all) job.Fail(status);
  }

  QueueCounts counts() const {
    absl::MutexLock lock(&mutex_);
    return waiting_.counts();
  }

  // Returns the predicted time until all that waits and runs now has been computed.
  absl::Duration Backlog() const {
    absl::MutexLock lock(&mutex_);
    return waiting_.Backlog(clock_.Now());
  }

 private:
  // Jobs that have left, to be failed without the lock.
  struct Failed {
    std::vector<WaitingJobs::Dead> dead;
    std::map<uint64_t, T> jobs = {};
  };

  static void FailEach(const Failed& failed) {
    for (const auto& [id, reason] : failed.dead) failed.jobs.at(id).Fail(reason);
  }

  absl::Status TryAdd(T& job, Failed& failed) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return closed_error_;
    std::map<uint64_t, T> added;  // first, as there may be no memory for it
    added.emplace(next_id_, job);
    std::vector<WaitingJobs::Dead> dead;
    absl::Status status;
    try {
      status = waiting_.Add(next_id_, job.info(), clock_.Now(), dead);
    } catch (const std::bad_alloc&) {
      failed = RemoveDead(std::move(dead));
      throw;
    }
    failed = RemoveDead(std::move(dead));
    if (!status.ok()) return status;
    jobs_.merge(added);
    ++next_id_;
    changed_.Signal();
    return absl::OkStatus();
  }

  // Looks at the queue once. Returns true if Take is done: `batch` has jobs, or is empty because
  // the queue is closed and empty. Returns false if Take has to look again; in that case this call
  // has waited for a change, unless it found dead jobs, which are to be failed first.
  bool TryTake(Batch<T>& batch, Failed& failed) {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_.Now();
    failed = RemoveDead(waiting_.RemoveDead(now));
    if (closed_ && jobs_.empty()) return true;
    batch.pieces.reserve(jobs_.size());  // while nothing is taken yet
    const WaitingJobs::Batch chosen = waiting_.Take(now, /*patient=*/!closed_);
    if (chosen.taken.empty()) {
      if (failed.dead.empty()) {
        clock_.AwaitUntil(changed_, mutex_, chosen.wait_until);
        batch.waited_for = true;
      }
      return false;
    }
    batch.close = chosen.close;
    for (const WaitingJobs::Taken& taken : chosen.taken) {
      const auto entry = jobs_.find(taken.id);
      batch.pieces.push_back({entry->second, taken.first_sequence, taken.sequences});
      if (taken.last) jobs_.erase(entry);
    }
    // The signals for the remaining jobs may have been used up, perhaps by this very thread.
    if (!jobs_.empty()) changed_.Signal();
    return true;
  }

  void Pause() {
    absl::MutexLock lock(&mutex_);
    clock_.AwaitUntil(changed_, mutex_, clock_.Now() + absl::Milliseconds(1));
  }

  // Allocates nothing, so that no job is lost for want of memory.
  Failed RemoveDead(std::vector<WaitingJobs::Dead> dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Failed failed{std::move(dead)};
    for (const auto& each : failed.dead) failed.jobs.insert(jobs_.extract(each.id));
    return failed;
  }

  Clock& clock_;
  // Made in advance, since a destructor may not throw.
  const absl::Status closed_error_ = absl::UnavailableError("the server is shutting down");
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  WaitingJobs waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, T> jobs_ ABSL_GUARDED_BY(mutex_);  // that wait, by id
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant::server
