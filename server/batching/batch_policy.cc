#include "server/batching/batch_policy.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/base/names.h"

namespace attendant::server {
namespace {

constexpr double kPatience = 8, kDelay = 2;
constexpr double kOverheads = 8;

constexpr Named<BatchClose> kCloses[] = {{"queue_empty", BatchClose::kQueueEmpty},
                                         {"tokens", BatchClose::kTokens},
                                         {"seconds", BatchClose::kSeconds},
                                         {"deadline", BatchClose::kDeadline}};

// The end of the time that a job may wait for company.
absl::Time Patience(const QueuedJob& job, const BatchLimits& limits) {
  return job.enqueued + std::min(limits.max_queue_delay, (job.deadline - job.enqueued) / 2);
}

// Composes the batch of one leader.
class Composition {
 public:
  Composition(absl::Span<const QueuedJob> jobs, absl::Span<const double> served, size_t leader,
              absl::Time now, const BatchLimits& limits)
      : jobs_(jobs),
        limits_(limits),
        served_(served.begin(), served.end()),
        taken_(jobs.size()),
        seconds_of_(jobs.size()),
        due_(jobs.size()),
        room_(BatchSeconds(limits, jobs[leader].overhead)),
        begin_(now + absl::Seconds(jobs[leader].overhead)) {
    choice_.leader = leader;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!(jobs[i].key == jobs[leader].key)) continue;
      candidates_.push_back(i);
      SetDue(i);
    }
    Add(leader);
    while (const std::optional<size_t> next = Next()) Add(*next);
  }

  bool full() const { return choice_.close != BatchClose::kQueueEmpty; }

  BatchChoice Finish() {
    choice_.take = std::move(taken_);
    choice_.seconds = seconds_ + jobs_[choice_.leader].overhead;
    return std::move(choice_);
  }

  // Whether a member of the batch has waited long enough.
  bool ripe(absl::Time now) const {
    for (size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i] > 0 && Patience(jobs_[i], limits_) <= now) return true;
    }
    return false;
  }

 private:
  const JobSlice& NextSlice(size_t job) const { return jobs_[job].slices[taken_[job]]; }

  void SetDue(size_t job) {
    due_[job] = DueTime(jobs_[job], seconds_of_[job] + NextSlice(job).seconds);
  }

  void Add(size_t job) {
    const JobSlice slice = NextSlice(job);
    seconds_of_[job] += slice.seconds;
    tokens_ += slice.tokens;
    seconds_ += slice.seconds;
    latest_ = std::min(latest_, jobs_[job].deadline);
    served_[jobs_[job].peer] += slice.seconds;
    if (tokens_ >= limits_.max_batch_tokens) choice_.close = BatchClose::kTokens;
    if (seconds_ >= room_) choice_.close = BatchClose::kSeconds;
    if (++taken_[job] < jobs_[job].slices.size()) return SetDue(job);
    candidates_.erase(std::find(candidates_.begin(), candidates_.end(), job));
  }

  // Returns why the next slice of the job may not join.
  std::optional<BatchClose> Obstacle(size_t job) const {
    const JobSlice& slice = NextSlice(job);
    if (slice.tokens > limits_.max_batch_tokens - tokens_) return BatchClose::kTokens;
    if (seconds_ + slice.seconds > room_) return BatchClose::kSeconds;
    // A slice of unknown duration makes no member late.
    const absl::Time end = begin_ + absl::Seconds(seconds_ + slice.seconds);
    const bool late = end > std::min(latest_, jobs_[job].deadline);
    return late && slice.seconds > 0 ? std::optional(BatchClose::kDeadline) : std::nullopt;
  }

  // Returns the job with the next slice to join. Drops the candidates that do not fit, because the
  // remaining space only shrinks.
  std::optional<size_t> Next() {
    std::optional<size_t> best;
    size_t kept = 0;
    for (const size_t i : candidates_) {
      if (const std::optional<BatchClose> obstacle = Obstacle(i)) {
        if (!full()) choice_.close = *obstacle;
        continue;
      }
      candidates_[kept++] = i;
      if (!best || Before(i, *best)) best = i;
    }
    candidates_.resize(kept);
    return best;
  }

  bool Before(size_t a, size_t b) const {
    const double served_a = served_[jobs_[a].peer], served_b = served_[jobs_[b].peer];
    return served_a != served_b ? served_a < served_b : due_[a] < due_[b];
  }

  const absl::Span<const QueuedJob> jobs_;
  const BatchLimits& limits_;
  std::vector<double> served_;
  std::vector<size_t> candidates_;  // jobs with the key of the leader that may have more to add
  std::vector<size_t> taken_;       // slices of each job
  std::vector<double> seconds_of_;  // taken of each job
  std::vector<absl::Time> due_;     // when the next slice of each candidate is due
  const double room_;               // seconds
  const absl::Time begin_;          // of the work on the first slice
  int64_t tokens_ = 0;
  double seconds_ = 0;
  absl::Time latest_ = absl::InfiniteFuture();  // when the batch has to be done
  BatchChoice choice_;
};

// Returns the job that leads, among all jobs or those that cannot wait any longer.
std::optional<size_t> Leader(absl::Span<const QueuedJob> jobs, absl::Span<const double> served,
                             absl::Time now, const BatchLimits& limits, bool only_ripe) {
  std::optional<size_t> best;
  std::tuple<double, absl::Time> best_rank;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const QueuedJob& job = jobs[i];
    if (only_ripe && Patience(job, limits) > now) continue;
    const std::tuple<double, absl::Time> rank(served[job.peer],
                                              DueTime(job, job.slices.front().seconds));
    if (best && !(rank < best_rank)) continue;
    best = i;
    best_rank = rank;
  }
  return best;
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

const char* Name(BatchClose close) { return NameIn(kCloses, close); }

absl::Duration DueAfter(double seconds, double ahead) {
  return absl::Seconds(std::min(kPatience * seconds, kDelay * (ahead + seconds)));
}

absl::Time DueTime(const QueuedJob& job, double seconds) {
  return std::min(job.deadline, job.enqueued + DueAfter(job.taken + seconds, job.ahead));
}

double BatchSeconds(const BatchLimits& limits, double overhead) {
  return std::max(absl::ToDoubleSeconds(limits.max_batch_seconds), kOverheads * overhead);
}

BatchChoice ChooseBatch(absl::Span<const QueuedJob> jobs, absl::Span<const double> served,
                        absl::Time now, const BatchLimits& limits) {
  const std::optional<size_t> first = Leader(jobs, served, now, limits, /*only_ripe=*/false);
  if (!first) return BatchChoice();
  Composition best(jobs, served, *first, now, limits);
  if (best.full() || best.ripe(now)) return best.Finish();
  if (const std::optional<size_t> ripe = Leader(jobs, served, now, limits, /*only_ripe=*/true)) {
    return Composition(jobs, served, *ripe, now, limits).Finish();
  }
  BatchChoice none;
  for (const QueuedJob& job : jobs) {
    none.wait_until = std::min(none.wait_until, Patience(job, limits));
  }
  return none;
}

}  // namespace attendant::server
