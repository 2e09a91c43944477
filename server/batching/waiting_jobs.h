// The state of the batch queue: which jobs wait, what their peers were served, and whether another
// job has a place among them.
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
  int64_t max_jobs = 256;  // that may wait at the same time
  // What may wait before the turn of a peer, counted of each other peer as far as its own turn
  // goes; and the tokens of one job.
  int64_t max_tokens = 65536;
  // Predicted time until all instances together have computed it.
  absl::Duration max_seconds = absl::Seconds(30);
  // Jobs that a peer leaves free while it has some waiting and no other peer has.
  int64_t reserved_jobs = 0;
  // The deadline of jobs without one is this long after their predicted end.
  absl::Duration default_deadline = absl::InfiniteDuration();
};

// Some sequences of a job, of which all are computed in one batch.
struct BatchEntry {
  std::shared_ptr<Job> job;
  int64_t first_sequence = 0;
  int64_t sequences = 1;
};

// Entries whose jobs have the same key, in order of arrival.
struct Batch {
  std::vector<BatchEntry> entries;
  BatchClose close = BatchClose::kQueueEmpty;
  bool waited_for = true;  // its instance was idle before it
};

// A job that has left the queue without being computed, or with some slices only.
struct RemovedJob {
  std::shared_ptr<Job> job;
  absl::Status reason;
};

// Not thread-safe. Releases no job while it is called: jobs that leave are returned.
//
// Peers share the server by start-time fair queueing: each has a clock that advances by the
// predicted seconds of what it is served, the peer with the slowest clock is served next, and one
// that comes after a pause starts where the slowest is, so that nobody saves up service.
//
// Because of these turns, the work of one peer delays another only as far as that one's own work
// goes. So tokens and predicted seconds are bounded by turns: a job is refused if the other peers,
// each counted with no more than the first slice of the job, have too much waiting before it. What
// its own peer has waiting does not count.
//
// The number of jobs is shared by the rule of Budget: a peer that has some waiting gets more room
// only while it holds no more than is free, or, if no other peer has anything waiting, while the
// reserve stays free. So does a model beside others; one alone needs no reserve, because its peers
// leave one. A peer that has nothing waiting gets whatever is free. Jobs without a peer (an empty
// name) are in no peer's share.
//
// Patient jobs are never refused for want of room. Their peers bring one more only while
// TakesMoreOf says so.
class WaitingJobs {
 public:
  WaitingJobs(QueueLimits queue_limits, BatchLimits batch_limits)
      : queue_limits_(queue_limits), batch_limits_(batch_limits) {
    running_.reserve(static_cast<size_t>(batch_limits.instances));
  }

  // Adds a job, whose missing fields it fills in; or refuses it with the errors of
  // BatchQueue::Submit. Expired jobs make room first, and are returned in `removed`, even if
  // memory runs out for the job.
  absl::Status Add(const std::shared_ptr<Job>& job, absl::Time now,
                   std::vector<RemovedJob>& removed);

  // Returns what Add would say now to another job like the smallest that this peer has waiting,
  // with this deadline. OK if the peer has none.
  absl::Status CheckAnother(const std::string& peer, absl::Time deadline, absl::Time now) const;

  // Returns whether this peer has less waiting than its part of the queue: the most that it can
  // have if no other peer is counted with more.
  bool TakesMoreOf(const std::string& peer) const;

  // Removes the expired jobs: those that are not awaited any more, and those that by prediction
  // cannot be computed before their deadline.
  std::vector<RemovedJob> RemoveExpired(absl::Time now);

  // Takes the batch that ChooseBatch chooses into `batch`, which is empty. `patient` allows it to
  // wait for further jobs. If there is none yet, returns the time at which to ask again. If it
  // throws std::bad_alloc, nothing has been taken.
  absl::Time Take(absl::Time now, bool patient, Batch& batch);

  // Removes all jobs.
  std::vector<QueuedJob> Clear();
  QueueCounts counts() const { return counts_; }

  // Returns the predicted time until all that waits and runs now has been computed.
  absl::Duration Backlog(absl::Time now) const;

 private:
  // Whether there is room for the job, and its deadline can be met.
  absl::Status CheckPlace(const Job& job, absl::Time now) const;
  absl::Status CheckRoom(const Job& job) const;
  absl::Status CheckShares(const Job& job) const;
  absl::Status CheckTurn(const Job& job) const;
  // Whether a job like this one would meet `deadline` if it arrived now.
  absl::Status CheckInTime(const Job& job, absl::Time deadline, absl::Time now) const;
  // How long such a job takes from now on, if its wait becomes somewhat longer than predicted.
  absl::Duration LikelyTime(const Job& job, absl::Time deadline, absl::Time now) const;
  // How long it waits by prediction: for the batches that run, the work of its own peer that is due
  // before it, and the fair shares of the other peers meanwhile.
  absl::Duration PredictWait(const Job& job, absl::Time deadline, absl::Time now) const;
  // Not OK: the job cannot be done in time even if it is started now.
  absl::Status CheckMeetable(const QueuedJob& queued, absl::Time now) const;
  // Takes slices from the front of a job, and counts them as served to its peer.
  BatchEntry TakeSlices(QueuedJob& queued, size_t slices);
  // Removes the jobs without waiting slices.
  void Compact();
  void Leave(QueuedJob& queued);  // with the slices that it still has
  double Parallel(size_t slices) const;
  // Predicted time until all instances together have computed what waits, in seconds, or what runs.
  double Ahead() const;
  absl::Duration Running(absl::Time now) const;

  size_t PeerOf(const std::string& name);
  QueueCounts WaitingOf(const std::string& peer) const;
  // What the peers but this one have waiting, of each no more than `most`.
  QueueCounts OthersWaiting(const std::string& peer, const QueueCounts& most) const;
  void ForgetIdlePeers();

  const QueueLimits queue_limits_;
  const BatchLimits batch_limits_;
  std::vector<QueuedJob> jobs_;  // in order of arrival
  QueueCounts counts_;

  // Slots of peers: an index is reused once its peer is forgotten. served_ is apart because the
  // policy sees it.
  std::vector<QueueCounts> peers_;  // what they have waiting
  std::vector<double> served_;
  std::map<std::string, size_t> peer_slots_;
  std::vector<size_t> free_slots_;  // has memory for all of them
  double virtual_time_ = 0;         // the clock of the peer that led last, when it led

  std::vector<absl::Time> running_;  // predicted ends of the latest batches, one for each instance
};

}  // namespace attendant::server
