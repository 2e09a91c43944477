// The queue of admitted jobs, from which all instances take their batches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/batching/batch_policy.h"
#include "server/batching/clock.h"
#include "server/batching/job.h"

namespace attendant::server {

// Upper bounds of what may wait at the same time.
struct QueueLimits {
  int64_t max_jobs = 256;
  int64_t max_tokens = 65536;
};

// Jobs that wait now, with their tokens in total.
struct QueueCounts {
  int64_t jobs = 0;
  int64_t tokens = 0;
};

// Thread-safe. The queue is open until Close. From then on it accepts no job and hands out what it
// still holds; it never opens again.
//
// Invariants:
// - The limits hold at every moment. A job that would exceed one is refused by Submit; an accepted
//   job is never dropped to make room.
// - Every accepted job leaves exactly once: in a batch from Take, or failed.
// - A job whose deadline has passed (DEADLINE_EXCEEDED) or whose caller is gone (CANCELLED) is
//   failed and never handed out. Every Take and FailDead looks for such jobs, and so does a Submit
//   that needs their room.
// - The oldest job leads the next batch (see ChooseBatch), so no key and no size starves.
// - If max_queue_delay is zero, no job waits while a thread is blocked in Take.
// - Jobs are failed and destroyed without the lock, so they may call the queue.
class BatchQueue {
 public:
  // `clock` must outlive the queue.
  BatchQueue(Clock& clock, QueueLimits queue_limits, BatchLimits batch_limits);

  // Fails the jobs that still wait with UNAVAILABLE. No other call may be in progress.
  ~BatchQueue();

  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // Takes ownership of `job` if it returns OK. Otherwise `job` stays with the caller, who has to
  // answer it: RESOURCE_EXHAUSTED names the limit that is reached, UNAVAILABLE means that the queue
  // is closed, DEADLINE_EXCEEDED that the job's deadline has passed, CANCELLED that its caller is
  // gone. The tokens of the job must not be negative.
  absl::Status Submit(std::unique_ptr<Job>& job);

  // Waits for a batch and returns its jobs, which all have the same key, in order of arrival.
  // Returns an empty batch once the queue is closed and holds nothing more.
  std::vector<std::unique_ptr<Job>> Take();

  // Fails the jobs that nobody waits for any more, which gives back what they hold.
  void FailDead();

  // Refuses further jobs. Take hands out the queued ones without waiting for max_queue_delay.
  void Close();

  // Fails every job that still waits with `status`.
  void FailAll(const absl::Status& status);

  QueueCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
