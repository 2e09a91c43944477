#include "server/batching/batch_queue.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

using Jobs = std::vector<std::unique_ptr<Job>>;

// Returns OK if `job` may still be computed, otherwise the error that it fails with.
absl::Status Alive(const Job& job, absl::Time now) {
  if (job.cancelled()) return absl::CancelledError("the caller has cancelled the request");
  if (job.deadline <= now) {
    return absl::DeadlineExceededError(absl::StrCat("the deadline passed ",
                                                    absl::FormatDuration(now - job.deadline),
                                                    " ago, before the request was computed"));
  }
  return absl::OkStatus();
}

struct Dead {
  std::unique_ptr<Job> job;
  absl::Status reason;
};

void FailEach(std::vector<Dead> dead) {
  for (Dead& each : dead) {
    each.job->Fail(each.reason);
    each.job.reset();
  }
}

absl::Status Full(Refusal reason, const char* what, int64_t held, int64_t bound, int64_t asked) {
  return Refused(reason, absl::StrCat("the queue holds ", held, " of at most ", bound, " ", what,
                                      ", this request brings ", asked, "; try again later"));
}

}  // namespace

class BatchQueue::Impl {
 public:
  Impl(Clock& clock, QueueLimits queue_limits, BatchLimits batch_limits)
      : clock_(clock), queue_limits_(queue_limits), batch_limits_(batch_limits) {}

  absl::Status Submit(std::unique_ptr<Job>& job) {
    std::vector<Dead> dead;
    const absl::Status status = TryAdd(job, dead);
    FailEach(std::move(dead));
    return status;
  }

  Jobs Take() {
    while (true) {
      std::vector<Dead> dead;
      Jobs batch;
      const bool done = TryTake(batch, dead);
      FailEach(std::move(dead));
      if (done) return batch;
    }
  }

  void FailDead() {
    std::vector<Dead> dead;
    {
      absl::MutexLock lock(&mutex_);
      dead = RemoveDead(clock_.Now());
    }
    FailEach(std::move(dead));
  }

  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    changed_.SignalAll();
  }

  void FailAll(const absl::Status& status) {
    Jobs all;
    {
      absl::MutexLock lock(&mutex_);
      all.swap(jobs_);
      views_.clear();
      counts_ = QueueCounts();
    }
    for (std::unique_ptr<Job>& job : all) {
      job->Fail(status);
      job.reset();
    }
  }

  QueueCounts counts() const {
    absl::MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  absl::Status TryAdd(std::unique_ptr<Job>& job, std::vector<Dead>& dead) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return absl::UnavailableError("the server is shutting down");
    const absl::Time now = clock_.Now();
    if (absl::Status status = Alive(*job, now); !status.ok()) return status;
    if (!CheckRoom(*job).ok()) dead = RemoveDead(now);
    if (absl::Status status = CheckRoom(*job); !status.ok()) return status;

    job->enqueued = now;
    views_.push_back({job->key, job->tokens, now, job->deadline});
    Count(*job, +1);
    jobs_.push_back(std::move(job));
    changed_.Signal();
    return absl::OkStatus();
  }

  // Looks at the queue once. Returns true if Take is done: `batch` has jobs, or is empty because
  // the queue is closed and empty. Returns false if Take has to look again; in that case this call
  // has waited for a change, unless it found dead jobs, which are to be failed first.
  bool TryTake(Jobs& batch, std::vector<Dead>& dead) {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_.Now();
    dead = RemoveDead(now);
    if (closed_ && jobs_.empty()) return true;

    BatchLimits limits = batch_limits_;
    if (closed_) limits.max_queue_delay = absl::ZeroDuration();
    const BatchChoice choice = ChooseBatch(views_, now, limits);
    if (choice.take.empty()) {
      if (dead.empty()) clock_.AwaitUntil(changed_, mutex_, choice.wait_until);
      return false;
    }
    batch = Remove(choice.take);
    // The signals for the remaining jobs may have been used up, perhaps by this very thread.
    if (!jobs_.empty()) changed_.Signal();
    return true;
  }

  absl::Status CheckRoom(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // The limits are compared by subtraction, because the sums could overflow.
    if (counts_.jobs >= queue_limits_.max_jobs) {
      return Full(Refusal::kQueueJobs, "jobs", counts_.jobs, queue_limits_.max_jobs, 1);
    }
    if (job.tokens > queue_limits_.max_tokens - counts_.tokens) {
      return Full(Refusal::kQueueTokens, "tokens", counts_.tokens, queue_limits_.max_tokens,
                  job.tokens);
    }
    return absl::OkStatus();
  }

  std::vector<Dead> RemoveDead(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<size_t> indices;
    std::vector<Dead> dead;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      absl::Status status = Alive(*jobs_[i], now);
      if (status.ok()) continue;
      indices.push_back(i);
      dead.push_back({nullptr, std::move(status)});
    }
    Jobs removed = Remove(indices);
    for (size_t i = 0; i < removed.size(); ++i) dead[i].job = std::move(removed[i]);
    return dead;
  }

  // Removes the jobs at `indices`, which must ascend, from the queue in one pass and returns them.
  Jobs Remove(const std::vector<size_t>& indices) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Jobs removed;
    if (indices.empty()) return removed;
    removed.reserve(indices.size());
    size_t kept = indices.front();
    for (size_t i = kept; i < jobs_.size(); ++i) {
      if (removed.size() < indices.size() && i == indices[removed.size()]) {
        Count(*jobs_[i], -1);
        removed.push_back(std::move(jobs_[i]));
      } else {
        jobs_[kept] = std::move(jobs_[i]);
        views_[kept] = views_[i];
        ++kept;
      }
    }
    jobs_.resize(kept);
    views_.resize(kept, QueuedJob());
    return removed;
  }

  void Count(const Job& job, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    counts_.jobs += sign;
    counts_.tokens += sign * job.tokens;
  }

  Clock& clock_;
  const QueueLimits queue_limits_;
  const BatchLimits batch_limits_;

  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Both are in order of arrival. views_[i] is what the policy sees of jobs_[i]; it is stored so
  // that ChooseBatch can be called without building a copy.
  Jobs jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<QueuedJob> views_ ABSL_GUARDED_BY(mutex_);
  QueueCounts counts_ ABSL_GUARDED_BY(mutex_);
};

BatchQueue::BatchQueue(Clock& clock, QueueLimits queue_limits, BatchLimits batch_limits)
    : impl_(std::make_unique<Impl>(clock, queue_limits, batch_limits)) {}

BatchQueue::~BatchQueue() {
  Close();
  FailAll(absl::UnavailableError("the server is shutting down"));
}

absl::Status BatchQueue::Submit(std::unique_ptr<Job>& job) { return impl_->Submit(job); }
std::vector<std::unique_ptr<Job>> BatchQueue::Take() { return impl_->Take(); }
void BatchQueue::FailDead() { impl_->FailDead(); }
void BatchQueue::Close() { impl_->Close(); }
void BatchQueue::FailAll(const absl::Status& status) { impl_->FailAll(status); }
QueueCounts BatchQueue::counts() const { return impl_->counts(); }

}  // namespace attendant::server
