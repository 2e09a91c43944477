#include "server/batching/waiting_jobs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

// Waits may become longer than predicted by this factor. Jobs admitted right up to their deadline
// would often be computed too late, in place of others. A server that refuses most of its calls
// spends time on them that earlier predictions did not include: at ten times the capacity of one
// core, a factor of 1.1 made up to a tenth of the computed work late.
constexpr double kWaitMargin = 1.25;

// Known peers beyond which idle ones are forgotten whatever service they have received.
constexpr size_t kMostPeers = 1024;

absl::Status Full(Refusal reason, const char* unit, const absl::AlphaNum& held,
                  const absl::AlphaNum& bound, const absl::AlphaNum& asked) {
  return RefusedFull(reason, "queue", held, bound, unit,
                     absl::StrCat("this request needs ", asked));
}

absl::Status FullOfSeconds(double held, double bound, double asked) {
  return Full(Refusal::kQueueSeconds, "predicted seconds, --max-queue-seconds",
              absl::StrFormat("%.3f", held), absl::StrFormat("%.3f", bound),
              absl::StrFormat("%.3f", asked));
}

absl::Status Unmeetable(absl::Duration needed, absl::Duration left) {
  return Refused(Refusal::kDeadlineHopeless,
                 absl::StrCat("the deadline cannot be met: the request needs ",
                              absl::FormatDuration(absl::Floor(needed, absl::Microseconds(1))),
                              " by prediction, including its wait; the deadline is in ",
                              absl::FormatDuration(absl::Floor(left, absl::Microseconds(1)))));
}

double SecondsOf(absl::Span<const JobSlice> slices) {
  double seconds = 0;
  for (const JobSlice& slice : slices) seconds += slice.seconds;
  return seconds;
}

int64_t TokensOf(absl::Span<const JobSlice> slices) {
  int64_t tokens = 0;
  for (const JobSlice& slice : slices) tokens += slice.tokens;
  return tokens;
}

// Ensures that the next push_back does not allocate.
template <typename T>
void MakeRoom(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 1);
}

}  // namespace

absl::Status WaitingJobs::Add(const std::shared_ptr<Job>& added, absl::Time now,
                              std::vector<RemovedJob>& removed) {
  Job& job = *added;
  if (job.slices.empty()) job.slices = {{.tokens = job.tokens}};
  RETURN_IF_ERROR(CheckAwaited(job, now));
  if (!CheckPlace(job, now).ok()) {
    removed = RemoveExpired(now);
    RETURN_IF_ERROR(CheckPlace(job, now));
  }

  const size_t peer = PeerOf(job.peer);
  MakeRoom(jobs_);
  job.enqueued = now;
  if (job.deadline == absl::InfiniteFuture()) {
    job.deadline = now + LikelyTime(job, job.deadline, now) + queue_limits_.default_deadline;
  }
  const QueueCounts waiting = {1, TokensOf(job.slices), SecondsOf(job.slices)};
  jobs_.push_back({.key = job.key,
                   .peer = peer,
                   .enqueued = now,
                   .deadline = job.deadline,
                   .slices = job.slices,
                   .ahead = Ahead(),
                   .overhead = job.overhead,
                   .job = added,
                   .waiting = waiting});
  peers_[peer].Add(waiting);
  counts_.Add(waiting);
  return absl::OkStatus();
}

absl::Status WaitingJobs::CheckAnother(const std::string& peer, absl::Time deadline,
                                       absl::Time now) const {
  const auto slot = peer_slots_.find(peer);
  if (slot == peer_slots_.end()) return absl::OkStatus();
  const Job* smallest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const QueuedJob& queued : jobs_) {
    if (queued.peer != slot->second) continue;
    const double seconds = queued.overhead + SecondsOf(queued.job->slices);
    if (seconds >= least) continue;
    least = seconds;
    smallest = queued.job.get();
  }
  if (smallest == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(CheckRoom(*smallest));
  return CheckInTime(*smallest, deadline, now);
}

absl::Status WaitingJobs::CheckPlace(const Job& job, absl::Time now) const {
  const int64_t tokens = TokensOf(job.slices);
  if (tokens > queue_limits_.max_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request has ", tokens, " tokens, including memory rows; the server allows ",
        queue_limits_.max_tokens, " in the queue (--max-queue-tokens)"));
  }
  if (!job.patient) {
    RETURN_IF_ERROR(CheckRoom(job));
  }
  return CheckInTime(job, job.deadline, now);
}

absl::Status WaitingJobs::CheckRoom(const Job& job) const {
  if (counts_.jobs >= queue_limits_.max_jobs) {
    return Full(Refusal::kQueueJobs, "jobs, --max-queue-requests", counts_.jobs,
                queue_limits_.max_jobs, 1);
  }
  RETURN_IF_ERROR(CheckShares(job));
  return CheckTurn(job);
}

absl::Status WaitingJobs::CheckShares(const Job& job) const {
  int64_t of_model = 0;
  for (const QueuedJob& queued : jobs_) {
    if (queued.key.model == job.key.model) ++of_model;
  }
  const int64_t of_peer = job.peer.empty() ? 0 : WaitingOf(job.peer).jobs;
  const int64_t free = queue_limits_.max_jobs - counts_.jobs;
  if (of_peer > 0) {
    const bool alone = of_peer == counts_.jobs - WaitingOf("").jobs;
    if (alone ? free <= queue_limits_.reserved_jobs : of_peer > free) {
      return Refused(Refusal::kPeerShare,
                     "the client already has its share of the queue's jobs; retry later");
    }
  }
  if (of_model == 0 || of_model == counts_.jobs || of_model <= free) return absl::OkStatus();
  return Refused(Refusal::kQueueJobs,
                 "the model already has its share of the queue's jobs; retry later");
}

absl::Status WaitingJobs::CheckTurn(const Job& job) const {
  const JobSlice& first = job.slices.front();
  const QueueCounts others = OthersWaiting(job.peer, {1, first.tokens, first.seconds});
  if (others.jobs == 0) return absl::OkStatus();
  // Compared by subtraction, because the sum could overflow.
  if (first.tokens > queue_limits_.max_tokens - others.tokens) {
    return Full(Refusal::kQueueTokens, "tokens, --max-queue-tokens", others.tokens,
                queue_limits_.max_tokens, first.tokens);
  }
  const double bound = absl::ToDoubleSeconds(queue_limits_.max_seconds);
  const double held = others.seconds / batch_limits_.instances;
  const double asked = first.seconds / batch_limits_.instances;
  return held + asked > bound ? FullOfSeconds(held, bound, asked) : absl::OkStatus();
}

bool WaitingJobs::TakesMoreOf(const std::string& peer) const {
  const QueueCounts own = WaitingOf(peer);
  QueueCounts all = OthersWaiting(peer, own);
  all.Add(own);
  return all.jobs < queue_limits_.max_jobs - queue_limits_.reserved_jobs &&
         all.tokens < queue_limits_.max_tokens &&
         all.seconds < absl::ToDoubleSeconds(queue_limits_.max_seconds) * batch_limits_.instances;
}

double WaitingJobs::Parallel(size_t slices) const {
  return std::min(static_cast<double>(batch_limits_.instances), static_cast<double>(slices));
}

double WaitingJobs::Ahead() const { return counts_.seconds / batch_limits_.instances; }

absl::Duration WaitingJobs::Running(absl::Time now) const {
  absl::Duration running;
  for (const absl::Time end : running_) running += std::max(absl::ZeroDuration(), end - now);
  return running / batch_limits_.instances;
}

absl::Duration WaitingJobs::Backlog(absl::Time now) const {
  return Running(now) + absl::Seconds(Ahead());
}

absl::Duration WaitingJobs::PredictWait(const Job& job, absl::Time deadline, absl::Time now) const {
  const double own = SecondsOf(job.slices);
  const absl::Time due = std::min(deadline, now + DueAfter(own, Ahead()));
  const auto slot = peer_slots_.find(job.peer);
  double clock = virtual_time_;  // of its peer, once it is done
  double before = 0;
  if (slot != peer_slots_.end()) {
    clock = std::max(clock, served_[slot->second]);
    for (const QueuedJob& queued : jobs_) {
      if (queued.peer == slot->second && DueTime(queued, queued.waiting.seconds) <= due) {
        before += queued.waiting.seconds;
      }
    }
  }
  clock += before + own;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (slot != peer_slots_.end() && i == slot->second) continue;
    before += std::clamp(clock - served_[i], 0.0, std::max(0.0, peers_[i].seconds));
  }
  return Running(now) + absl::Seconds(before) / batch_limits_.instances;
}

absl::Duration WaitingJobs::LikelyTime(const Job& job, absl::Time deadline, absl::Time now) const {
  const double least = job.overhead + SecondsOf(job.slices) / Parallel(job.slices.size());
  return absl::Seconds(least) + kWaitMargin * PredictWait(job, deadline, now);
}

absl::Status WaitingJobs::CheckInTime(const Job& job, absl::Time deadline, absl::Time now) const {
  if (deadline == absl::InfiniteFuture()) return absl::OkStatus();
  const absl::Duration likely = LikelyTime(job, deadline, now);
  const absl::Duration left = deadline - now;
  return likely > left ? Unmeetable(likely, left) : absl::OkStatus();
}

absl::Status WaitingJobs::CheckMeetable(const QueuedJob& queued, absl::Time now) const {
  const absl::Duration least =
      absl::Seconds(queued.overhead + queued.waiting.seconds / Parallel(queued.slices.size()));
  const absl::Duration left = queued.deadline - now;
  return least > left ? Unmeetable(least, left) : absl::OkStatus();
}

std::vector<RemovedJob> WaitingJobs::RemoveExpired(absl::Time now) {
  std::vector<RemovedJob> removed;
  for (const QueuedJob& queued : jobs_) {
    absl::Status status = CheckAwaited(*queued.job, now);
    if (status.ok()) status = CheckMeetable(queued, now);
    if (!status.ok()) removed.push_back({queued.job, std::move(status)});
  }
  // All allocations are done.
  size_t found = 0;
  for (QueuedJob& queued : jobs_) {
    if (found == removed.size()) break;
    if (queued.job != removed[found].job) continue;
    Leave(queued);
    ++found;
  }
  if (!removed.empty()) Compact();
  return removed;
}

void WaitingJobs::Leave(QueuedJob& queued) {
  counts_.Remove(queued.waiting);
  peers_[queued.peer].Remove(queued.waiting);
  queued.slices = {};
}

void WaitingJobs::Compact() {
  std::erase_if(jobs_, [](const QueuedJob& queued) { return queued.slices.empty(); });
}

BatchEntry WaitingJobs::TakeSlices(QueuedJob& queued, size_t slices) {
  BatchEntry entry = {queued.job, queued.first_sequence, 0};
  const absl::Span<const JobSlice> first = queued.slices.first(slices);
  for (const JobSlice& slice : first) entry.sequences += slice.sequences;
  const QueueCounts taken = {0, TokensOf(first), SecondsOf(first)};
  served_[queued.peer] += taken.seconds;
  if (slices == queued.slices.size()) {
    Leave(queued);
    return entry;
  }
  counts_.Remove(taken);
  peers_[queued.peer].Remove(taken);
  queued.waiting.Remove(taken);
  queued.first_sequence += entry.sequences;
  queued.taken += taken.seconds;
  queued.slices.remove_prefix(slices);
  return entry;
}

absl::Time WaitingJobs::Take(absl::Time now, bool patient, Batch& batch) {
  BatchLimits limits = batch_limits_;
  if (!patient) limits.max_queue_delay = absl::ZeroDuration();
  const BatchChoice choice = ChooseBatch(jobs_, served_, now, limits);
  if (choice.take.empty()) return choice.wait_until;
  const auto taken = [](size_t slices) { return slices > 0; };
  // No allocation may fail from here on.
  batch.entries.reserve(std::count_if(choice.take.begin(), choice.take.end(), taken));
  batch.close = choice.close;

  const QueuedJob& leader = jobs_[choice.leader];
  virtual_time_ = std::max(virtual_time_, served_[leader.peer]);
  served_[leader.peer] += leader.overhead;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (choice.take[i] > 0) batch.entries.push_back(TakeSlices(jobs_[i], choice.take[i]));
  }
  Compact();
  ForgetIdlePeers();
  const absl::Time end = now + absl::Seconds(choice.seconds);
  if (running_.size() < static_cast<size_t>(batch_limits_.instances)) {
    running_.push_back(end);
  } else {
    *std::min_element(running_.begin(), running_.end()) = end;
  }
  return choice.wait_until;
}

std::vector<QueuedJob> WaitingJobs::Clear() {
  for (QueuedJob& queued : jobs_) Leave(queued);
  return std::exchange(jobs_, {});
}

size_t WaitingJobs::PeerOf(const std::string& name) {
  MakeRoom(peers_);
  MakeRoom(served_);
  free_slots_.reserve(peers_.capacity());
  const auto [entry, is_new] = peer_slots_.try_emplace(name, peers_.size());
  size_t& slot = entry->second;
  if (is_new && !free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
    served_[slot] = virtual_time_;
  } else if (is_new) {
    peers_.emplace_back();
    served_.push_back(virtual_time_);
  }
  if (peers_[slot].jobs == 0) served_[slot] = std::max(served_[slot], virtual_time_);
  return slot;
}

QueueCounts WaitingJobs::WaitingOf(const std::string& peer) const {
  const auto slot = peer_slots_.find(peer);
  return slot == peer_slots_.end() ? QueueCounts() : peers_[slot->second];
}

QueueCounts WaitingJobs::OthersWaiting(const std::string& peer, const QueueCounts& most) const {
  const auto own = peer_slots_.find(peer);
  QueueCounts others;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (own != peer_slots_.end() && own->second == i) continue;
    const QueueCounts& waiting = peers_[i];
    others.Add({std::min(waiting.jobs, most.jobs), std::min(waiting.tokens, most.tokens),
                std::min(waiting.seconds, most.seconds)});
  }
  return others;
}

// If clients do not come back, nothing moves the slowest clock on, and their number is not bounded.
void WaitingJobs::ForgetIdlePeers() {
  const bool too_many = peer_slots_.size() > kMostPeers;
  for (auto entry = peer_slots_.begin(); entry != peer_slots_.end();) {
    const size_t slot = entry->second;
    if (peers_[slot].jobs > 0 || (served_[slot] > virtual_time_ && !too_many)) {
      ++entry;
      continue;
    }
    free_slots_.push_back(slot);
    entry = peer_slots_.erase(entry);
  }
}

}  // namespace attendant::server
