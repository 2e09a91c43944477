#include "server/batching/waiting_jobs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

// Waits may become longer than predicted by this factor. Jobs admitted up to their very deadline
// would be computed too late as often as not, in the place of others. A server that refuses most of
// its calls spends time on them that no earlier prediction knew of: at ten times the capacity of
// one core, a factor of 1.1 let up to a tenth of what was computed come too late.
constexpr double kWaitMargin = 1.25;

absl::Status Full(Refusal reason, const char* what, int64_t held, int64_t bound, int64_t asked) {
  return Refused(reason, absl::StrCat("the queue holds ", held, " of at most ", bound, " ", what,
                                      ", this request brings ", asked, "; try again later"));
}

absl::Status FullOfSeconds(double held, double bound, double asked) {
  return Refused(
      Refusal::kQueueSeconds,
      absl::StrFormat(
          "the queue holds %.3f of at most %.3f predicted seconds, this request brings %.3f; try "
          "again later",
          held, bound, asked));
}

absl::Status Hopeless(absl::Duration needed, absl::Duration left) {
  return Refused(Refusal::kDeadlineHopeless,
                 absl::StrCat("the deadline cannot be met: the request is predicted to take ",
                              absl::FormatDuration(absl::Floor(needed, absl::Microseconds(1))),
                              " with its wait, and its deadline is in ",
                              absl::FormatDuration(absl::Floor(left, absl::Microseconds(1)))));
}

double SecondsOf(absl::Span<const Slice> slices) {
  double seconds = 0;
  for (const Slice& slice : slices) seconds += slice.seconds;
  return seconds;
}

int64_t TokensOf(absl::Span<const Slice> slices) {
  int64_t tokens = 0;
  for (const Slice& slice : slices) tokens += slice.tokens;
  return tokens;
}

// So that the next push_back finds memory.
template <typename T>
void MakeRoom(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 1);
}

}  // namespace

void QueueCounts::Add(const QueueCounts& more) {
  jobs += more.jobs;
  tokens += more.tokens;
  seconds += more.seconds;
}

void QueueCounts::Remove(const QueueCounts& part) {
  jobs -= part.jobs;
  tokens -= part.tokens;
  seconds = jobs == 0 ? 0 : seconds - part.seconds;
}

absl::Status WaitingJobs::Add(uint64_t id, JobInfo& job, absl::Time now, std::vector<Dead>& dead) {
  if (job.slices.empty()) job.slices = {{.tokens = job.tokens}};
  absl::Status status = CheckAwaited(job, now);
  if (!status.ok()) return status;
  status = CheckPlace(job, now);
  if (!status.ok()) {
    dead = RemoveDead(now);
    status = CheckPlace(job, now);
  }
  if (!status.ok()) return status;

  const size_t peer = PeerOf(job.peer);
  MakeRoom(entries_);
  MakeRoom(views_);
  job.enqueued = now;
  if (job.deadline == absl::InfiniteFuture()) {
    job.deadline = now + LikelyTime(job, now) + queue_limits_.default_deadline;
  }
  const QueueCounts added = {1, TokensOf(job.slices), SecondsOf(job.slices)};
  const double ahead = Ahead();
  peers_[peer].Add(added);
  counts_.Add(added);
  entries_.push_back({id, &job, added});
  views_.push_back({job.key, peer, now, job.deadline, job.slices, ahead, 0, job.overhead});
  return absl::OkStatus();
}

absl::Status WaitingJobs::CheckAnother(const std::string& peer, absl::Time deadline,
                                       absl::Time now) const {
  const auto slot = peer_slots_.find(peer);
  if (slot == peer_slots_.end()) return absl::OkStatus();
  const JobInfo* smallest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (views_[i].peer != slot->second) continue;
    const JobInfo& job = *entries_[i].job;
    const double seconds = job.overhead + SecondsOf(job.slices);
    if (seconds >= least) continue;
    least = seconds;
    smallest = &job;
  }
  if (smallest == nullptr) return absl::OkStatus();
  JobInfo job;
  job.key = smallest->key;
  job.peer = peer;
  job.deadline = deadline;
  job.slices = smallest->slices;
  job.overhead = smallest->overhead;
  return CheckPlace(job, now);
}

absl::Status WaitingJobs::CheckPlace(const JobInfo& job, absl::Time now) const {
  absl::Status status = CheckRoom(job);
  return status.ok() ? CheckInTime(job, now) : status;
}

absl::Status WaitingJobs::CheckRoom(const JobInfo& job) const {
  const int64_t tokens = TokensOf(job.slices);
  if (tokens > queue_limits_.max_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request brings ", tokens, " tokens, with the rows of its memory; at most ",
        queue_limits_.max_tokens, " may wait (--max-queue-tokens)"));
  }
  if (job.patient) return absl::OkStatus();
  if (counts_.jobs >= queue_limits_.max_jobs) {
    return Full(Refusal::kQueueJobs, "jobs", counts_.jobs, queue_limits_.max_jobs, 1);
  }
  absl::Status status = CheckShares(job);
  return status.ok() ? CheckTurn(job) : status;
}

absl::Status WaitingJobs::CheckShares(const JobInfo& job) const {
  int64_t of_model = 0;
  for (const Entry& entry : entries_) {
    if (entry.job->key.model == job.key.model) ++of_model;
  }
  const int64_t of_peer = job.peer.empty() ? 0 : WaitingOf(job.peer).jobs;
  const int64_t free = queue_limits_.max_jobs - counts_.jobs;
  if (of_peer > 0) {
    const bool alone = of_peer == counts_.jobs - WaitingOf("").jobs;
    if (alone ? free <= queue_limits_.reserved_jobs : of_peer > free) {
      return Refused(Refusal::kPeerShare,
                     "the caller has its share of the queue's jobs; try again later");
    }
  }
  if (of_model == 0 || of_model == counts_.jobs || of_model <= free) return absl::OkStatus();
  return Refused(Refusal::kQueueJobs,
                 "the model has its share of the queue's jobs; try again later");
}

absl::Status WaitingJobs::CheckTurn(const JobInfo& job) const {
  const Slice& first = job.slices.front();
  const QueueCounts others = OthersWaiting(job.peer, {1, first.tokens, first.seconds});
  if (others.jobs == 0) return absl::OkStatus();
  // Compared by subtraction, because the sum could overflow.
  if (first.tokens > queue_limits_.max_tokens - others.tokens) {
    return Full(Refusal::kQueueTokens, "tokens", others.tokens, queue_limits_.max_tokens,
                first.tokens);
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

absl::Time WaitingJobs::PredictEnd(const JobInfo& job, absl::Time now) const {
  const double own = SecondsOf(job.slices);
  const absl::Time due =
      DueTime({job.key, 0, now, job.deadline, job.slices, Ahead(), 0, job.overhead}, own);
  const auto slot = peer_slots_.find(job.peer);
  double clock = virtual_time_;  // of its peer, once it is done
  double before = 0;
  if (slot != peer_slots_.end()) {
    clock = std::max(clock, served_[slot->second]);
    for (size_t i = 0; i < entries_.size(); ++i) {
      const QueuedJob& view = views_[i];
      if (view.peer == slot->second && DueTime(view, entries_[i].waiting.seconds) <= due) {
        before += entries_[i].waiting.seconds;
      }
    }
  }
  clock += before + own;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (slot != peer_slots_.end() && i == slot->second) continue;
    before += std::clamp(clock - served_[i], 0.0, std::max(0.0, peers_[i].seconds));
  }
  return now + Running(now) + absl::Seconds(before) / batch_limits_.instances +
         absl::Seconds(job.overhead + own / Parallel(job.slices.size()));
}

absl::Duration WaitingJobs::LikelyTime(const JobInfo& job, absl::Time now) const {
  const absl::Duration wait = PredictEnd(job, now) - now;
  const absl::Duration least =
      absl::Seconds(job.overhead + SecondsOf(job.slices) / Parallel(job.slices.size()));
  return least + kWaitMargin * (wait - least);
}

absl::Status WaitingJobs::CheckInTime(const JobInfo& job, absl::Time now) const {
  if (job.deadline == absl::InfiniteFuture()) return absl::OkStatus();
  const absl::Duration likely = LikelyTime(job, now);
  const absl::Duration left = job.deadline - now;
  return likely > left ? Hopeless(likely, left) : absl::OkStatus();
}

absl::Status WaitingJobs::CheckHopeful(size_t index, absl::Time now) const {
  const Entry& entry = entries_[index];
  const size_t slices = views_[index].slices.size();
  const absl::Duration least =
      absl::Seconds(entry.job->overhead + entry.waiting.seconds / Parallel(slices));
  const absl::Duration left = entry.job->deadline - now;
  return least > left ? Hopeless(least, left) : absl::OkStatus();
}

std::vector<WaitingJobs::Dead> WaitingJobs::RemoveDead(absl::Time now) {
  std::vector<Dead> dead;
  for (size_t i = 0; i < entries_.size(); ++i) {
    absl::Status status = CheckAwaited(*entries_[i].job, now);
    if (status.ok()) status = CheckHopeful(i, now);
    if (status.ok()) continue;
    dead.push_back({entries_[i].id, std::move(status)});
  }
  // What may find no memory is done.
  for (size_t i = 0, found = 0; found < dead.size(); ++i) {
    if (entries_[i].id != dead[found].id) continue;
    Leave(i);
    ++found;
  }
  if (!dead.empty()) Compact();
  return dead;
}

void WaitingJobs::Leave(size_t index) {
  QueuedJob& view = views_[index];
  counts_.Remove(entries_[index].waiting);
  peers_[view.peer].Remove(entries_[index].waiting);
  view.slices = {};
}

void WaitingJobs::Compact() {
  size_t kept = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (views_[i].slices.empty()) continue;
    entries_[kept] = entries_[i];
    views_[kept] = views_[i];
    ++kept;
  }
  entries_.resize(kept);
  views_.resize(kept);
}

WaitingJobs::Taken WaitingJobs::TakeSlices(size_t index, size_t slices) {
  Entry& entry = entries_[index];
  QueuedJob& view = views_[index];
  Taken taken{entry.id, entry.first_sequence, 0, slices == view.slices.size()};
  const absl::Span<const Slice> first = view.slices.first(slices);
  for (const Slice& slice : first) taken.sequences += slice.sequences;
  const QueueCounts part = {0, TokensOf(first), SecondsOf(first)};
  served_[view.peer] += part.seconds;
  if (taken.last) {
    Leave(index);
    return taken;
  }
  counts_.Remove(part);
  peers_[view.peer].Remove(part);
  entry.waiting.Remove(part);
  entry.first_sequence += taken.sequences;
  view.taken += part.seconds;
  view.slices.remove_prefix(slices);
  return taken;
}

WaitingJobs::Batch WaitingJobs::Take(absl::Time now, bool patient) {
  BatchLimits limits = batch_limits_;
  if (!patient) limits.max_queue_delay = absl::ZeroDuration();
  const BatchChoice choice = ChooseBatch({views_, served_}, now, limits);
  Batch batch;
  batch.close = choice.close;
  batch.wait_until = choice.wait_until;
  if (choice.take.empty()) return batch;
  batch.taken.reserve(choice.take.size());  // from here on nothing may find no memory

  const size_t leading = views_[choice.leader].peer;
  virtual_time_ = std::max(virtual_time_, served_[leading]);
  served_[leading] += views_[choice.leader].overhead;
  for (const BatchChoice::Pick& pick : choice.take) {
    batch.taken.push_back(TakeSlices(pick.job, pick.slices));
  }
  Compact();
  ForgetIdlePeers();
  const absl::Time end = now + absl::Seconds(choice.seconds);
  if (running_.size() < static_cast<size_t>(batch_limits_.instances)) {
    running_.push_back(end);
  } else {
    *std::min_element(running_.begin(), running_.end()) = end;
  }
  return batch;
}

void WaitingJobs::Clear() {
  for (size_t i = 0; i < entries_.size(); ++i) Leave(i);
  Compact();
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

void WaitingJobs::ForgetIdlePeers() {
  for (auto entry = peer_slots_.begin(); entry != peer_slots_.end();) {
    const size_t slot = entry->second;
    if (peers_[slot].jobs > 0 || served_[slot] > virtual_time_) {
      ++entry;
      continue;
    }
    free_slots_.push_back(slot);
    entry = peer_slots_.erase(entry);
  }
}

}  // namespace attendant::server
