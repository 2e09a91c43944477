// The state of the batch queue: which jobs wait, what their peers were served, and whether another
// job has a place among them.
#pragma once

#include <cstdint>
#include <map>
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

// Jobs that wait now, with their tokens and predicted seconds of one instance in total. Of a
// job that has been handed out in part, the tokens and seconds are those of the rest.
struct QueueCounts {
  int64_t jobs = 0;
  int64_t tokens = 0;
  double seconds = 0;

  void Add(const QueueCounts& more);
  // Rounding errors of sums do not add up for ever: where no job is left, there are 0 seconds.
  void Remove(const QueueCounts& part);
};

// Not thread-safe. Jobs are known by the ids that the caller gives them, ascending in order of
// arrival; their JobInfo must live until they have left.
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

  // A job that has left without being computed, or with some slices only.
  struct Dead {
    uint64_t id;
    absl::Status reason;
  };

  // Adds a job, whose missing fields it fills in; or refuses it with the errors of
  // BatchQueue::Submit. Jobs for which nobody waits make room first, and are returned in `dead`.
  absl::Status Add(uint64_t id, JobInfo& job, absl::Time now, std::vector<Dead>& dead);

  // Returns what Add would say now to another job like the smallest that this peer has waiting,
  // with this deadline. OK if the peer has none.
  absl::Status CheckAnother(const std::string& peer, absl::Time deadline, absl::Time now) const;

  // Returns whether this peer has less waiting than its part of the queue: the most that it can
  // have if no other peer is counted with more.
  bool TakesMoreOf(const std::string& peer) const;

  // Removes the jobs for which nobody waits any more, and those which by prediction cannot be
  // computed before their deadline.
  std::vector<Dead> RemoveDead(absl::Time now);

  // Sequences of a job that are to be computed now.
  struct Taken {
    uint64_t id;
    int64_t first_sequence;
    int64_t sequences;
    bool last;  // nothing of the job is left in the queue
  };
  struct Batch {
    std::vector<Taken> taken;  // in order of arrival; empty: nothing yet
    BatchClose close = BatchClose::kQueueEmpty;
    absl::Time wait_until = absl::InfiniteFuture();
  };

  // Takes the batch that ChooseBatch chooses. `patient` allows it to wait for further jobs. If it
  // throws std::bad_alloc, nothing has been taken.
  Batch Take(absl::Time now, bool patient);

  void Clear();
  QueueCounts counts() const { return counts_; }

  // Returns the predicted time until all that waits and runs now has been computed.
  absl::Duration Backlog(absl::Time now) const;

  // Returns when the job would be done if it came now, by prediction: behind the batches that run,
  // what is due before it of its own peer, and the fair shares of the other peers meanwhile.
  absl::Time PredictEnd(const JobInfo& job, absl::Time now) const;

 private:
  struct Entry {
    uint64_t id;
    const JobInfo* job;
    QueueCounts waiting;         // what of the job still waits
    int64_t first_sequence = 0;  // of that
  };

  // Whether there is room for the job, and its deadline can be met.
  absl::Status CheckPlace(const JobInfo& job, absl::Time now) const;
  absl::Status CheckRoom(const JobInfo& job) const;
  absl::Status CheckShares(const JobInfo& job) const;
  absl::Status CheckTurn(const JobInfo& job) const;
  absl::Status CheckInTime(const JobInfo& job, absl::Time now) const;
  // How long the job takes from now on, if its wait becomes somewhat longer than predicted.
  absl::Duration LikelyTime(const JobInfo& job, absl::Time now) const;
  // Not OK: the job at `index` cannot be done in time even if it is started now.
  absl::Status CheckHopeful(size_t index, absl::Time now) const;
  // Takes slices from the front of a job, and counts them as served to its peer.
  Taken TakeSlices(size_t index, size_t slices);
  // Removes the entries without waiting slices.
  void Compact();
  void Leave(size_t index);  // the job, with the slices that it still has
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
  // Both are in order of arrival. views_[i] is what the policy sees of entries_[i].
  std::vector<Entry> entries_;
  std::vector<QueuedJob> views_;
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
