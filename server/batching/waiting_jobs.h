// The state of the batch queue: the waiting jobs, the service that peers have received, and the
// limits for further jobs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/batch_policy.h"
#include "server/batching/job.h"

namespace attendant::server {

struct QueueLimits {
  int64_t max_jobs = 256;  // waiting at the same time
  // Tokens that may wait ahead of a peer's turn, counting of each other peer only one turn's worth;
  // also the maximum of one job.
  int64_t max_tokens = 65536;
  // Predicted time to compute them on all instances together.
  absl::Duration max_seconds = absl::Seconds(30);
  // Jobs that a peer with some waiting leaves free while no other peer has any waiting.
  int64_t reserved_jobs = 0;
  // Deadline, after its predicted completion, of a job without one.
  absl::Duration default_deadline = absl::InfiniteDuration();
};

// Some sequences of a job, all computed in one batch.
struct BatchEntry {
  std::shared_ptr<Job> job;
  int64_t first_sequence = 0;
  int64_t sequences = 1;
};

// Entries of jobs with the same key, in order of arrival.
struct Batch {
  std::vector<BatchEntry> entries;
  BatchClose close = BatchClose::kQueueEmpty;
  bool waited_for = true;  // its instance was idle before
};

// A job that left the queue before all of its slices were computed.
struct RemovedJob {
  std::shared_ptr<Job> job;
  absl::Status reason;
};

// Not thread-safe. Does not release jobs during a call: removed jobs are returned.
//
// Peers share the server by start-time fair queueing. Each peer's clock advances by the predicted
// seconds of the service it receives, and the peer with the slowest clock is served next. A peer
// that returns after a pause starts at the slowest clock, so that it cannot save up service. If
// more than 1,024 peers are known, those without waiting jobs are forgotten.
//
// With these turns, the work of one peer delays another only for the other's own turn. Tokens and
// predicted seconds are therefore bounded by turns: a job is refused if too much work of other
// peers, each counted with at most the job's first slice, waits ahead of it. Its own peer's waiting
// work does not count.
//
// Job counts are shared by the rule of Budget: a peer that has jobs waiting may add more only while
// it holds no more than is free or, if no other peer has any waiting, while the reserve stays free.
// The same applies to a model among several; a single model needs no reserve, because its peers
// leave one. A peer without waiting jobs may use whatever is free. Jobs without a peer (an empty
// name) are in no peer's share.
//
// Patient jobs are never refused for lack of space. Their peers add one only while TakesMoreOf
// returns true.
class WaitingJobs {
 public:
  WaitingJobs(QueueLimits queue_limits, BatchLimits batch_limits)
      : queue_limits_(queue_limits), batch_limits_(batch_limits) {
    running_.reserve(static_cast<size_t>(batch_limits.instances));
  }

  // Adds a job and fills in its missing fields, or refuses it with the errors of
  // BatchQueue::Submit. Expired jobs make room first; they are returned in `removed`, even if
  // memory runs out for the job.
  absl::Status Add(const std::shared_ptr<Job>& job, absl::Time now,
                   std::vector<RemovedJob>& removed);

  // Returns the result that Add would have now for another job of this deadline that is like the
  // peer's smallest waiting one; OK if the peer has none.
  absl::Status CheckAnother(const std::string& peer, absl::Time deadline, absl::Time now) const;

  // Returns whether this peer has less than its share of the queue waiting: the most it can have
  // while no other peer counts with more.
  bool TakesMoreOf(const std::string& peer) const;

  // Removes expired jobs: those no longer awaited, and those predicted to miss their deadline.
  std::vector<RemovedJob> RemoveExpired(absl::Time now);

  // Takes the batch chosen by ChooseBatch into the empty `batch`. `patient` allows it to wait for
  // further jobs. If there is no batch yet, returns when to ask again. If it throws std::bad_alloc,
  // nothing has been taken.
  absl::Time Take(absl::Time now, bool patient, Batch& batch);

  // Removes all jobs.
  std::vector<QueuedJob> Clear();
  QueueCounts counts() const { return counts_; }

  // Returns the predicted time until all waiting and running work is computed.
  absl::Duration Backlog(absl::Time now) const;

 private:
  // Checks that there is room for the job and that its deadline can be met.
  absl::Status CheckPlace(const Job& job, absl::Time now) const;
  absl::Status CheckRoom(const Job& job) const;
  absl::Status CheckShares(const Job& job) const;
  absl::Status CheckTurn(const Job& job) const;
  // Checks that a job like this one, arriving now, would meet `deadline`.
  absl::Status CheckInTime(const Job& job, absl::Time deadline, absl::Time now) const;
  // Returns the job's completion time if its wait is somewhat longer than predicted.
  absl::Duration LikelyTime(const Job& job, absl::Time deadline, absl::Time now) const;
  // Predicts the job's wait: for running batches, its own peer's earlier work, and the fair shares
  // of the other peers meanwhile.
  absl::Duration PredictWait(const Job& job, absl::Time deadline, absl::Time now) const;
  // Returns an error if the job cannot finish in time even if it starts now.
  absl::Status CheckMeetable(const QueuedJob& queued, absl::Time now) const;
  // Takes slices from the front of a job and counts them as service for its peer.
  BatchEntry TakeSlices(QueuedJob& queued, size_t slices);
  // Removes jobs without waiting slices.
  void Compact();
  void Leave(QueuedJob& queued);  // with its remaining slices
  double Parallel(size_t slices) const;
  // Predicted time, over all instances, of waiting work (in seconds) and of running work.
  double Ahead() const;
  absl::Duration Running(absl::Time now) const;

  size_t PeerOf(const std::string& name);
  QueueCounts WaitingOf(const std::string& peer) const;
  // Returns what the other peers have waiting, at most `most` of each.
  QueueCounts OthersWaiting(const std::string& peer, const QueueCounts& most) const;
  void ForgetIdlePeers();

  const QueueLimits queue_limits_;
  const BatchLimits batch_limits_;
  std::vector<QueuedJob> jobs_;  // in order of arrival
  QueueCounts counts_;

  // Slots of peers; an index is reused once its peer is forgotten. served_ is separate because the
  // policy reads it.
  std::vector<QueueCounts> peers_;  // waiting work
  std::vector<double> served_;
  std::map<std::string, size_t> peer_slots_;
  std::vector<size_t> free_slots_;  // reserved for all peers
  double virtual_time_ = 0;         // clock of the latest leading peer

  std::vector<absl::Time> running_;  // predicted end of each instance's latest batch
};

}  // namespace attendant::server
