#include "server/batching/batch_queue.h"

#include <new>

namespace attendant::server {
namespace {

void FailEach(const std::vector<RemovedJob>& removed) {
  for (const RemovedJob& each : removed) each.job->Fail(each.reason);
}

}  // namespace

BatchQueue::~BatchQueue() {
  Close();
  FailAll(closed_error_);
}

absl::Status BatchQueue::Submit(std::shared_ptr<Job> job) {
  std::vector<RemovedJob> removed;
  absl::Status status;
  try {
    absl::MutexLock lock(&mutex_);
    if (closed_) return closed_error_;
    status = waiting_.Add(job, clock_.Now(), removed);
    if (status.ok()) changed_.Signal();
  } catch (const std::bad_alloc&) {
    FailEach(removed);
    throw;
  }
  FailEach(removed);
  return status;
}

absl::Status BatchQueue::CheckAnother(const std::string& peer, absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  return waiting_.CheckAnother(peer, deadline, clock_.Now());
}

bool BatchQueue::TakesMoreOf(const std::string& peer) const {
  absl::MutexLock lock(&mutex_);
  return waiting_.TakesMoreOf(peer);
}

Batch BatchQueue::Take() {
  Batch batch;
  batch.waited_for = false;
  while (true) {
    std::vector<RemovedJob> removed;
    bool done = false, starved = false;
    try {
      done = TryTake(batch, removed);
    } catch (const std::bad_alloc&) {
      starved = true;
    }
    FailEach(removed);
    if (done) return batch;
    if (starved) Pause();
  }
}

bool BatchQueue::TryTake(Batch& batch, std::vector<RemovedJob>& removed) {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_.Now();
  removed = waiting_.RemoveExpired(now);
  if (closed_ && waiting_.counts().jobs == 0) return true;
  const absl::Time wait_until = waiting_.Take(now, /*patient=*/!closed_, batch);
  if (batch.entries.empty()) {
    if (removed.empty()) {
      clock_.AwaitUntil(changed_, mutex_, wait_until);
      batch.waited_for = true;
    }
    return false;
  }
  // The signals for the remaining jobs may have been used up, perhaps by this very thread.
  if (waiting_.counts().jobs > 0) changed_.Signal();
  return true;
}

void BatchQueue::FailExpired() {
  std::vector<RemovedJob> removed;
  {
    absl::MutexLock lock(&mutex_);
    removed = waiting_.RemoveExpired(clock_.Now());
  }
  FailEach(removed);
}

void BatchQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  changed_.SignalAll();
}

void BatchQueue::FailAll(const absl::Status& status) {
  std::vector<QueuedJob> all;
  {
    absl::MutexLock lock(&mutex_);
    all = waiting_.Clear();
  }
  for (const QueuedJob& queued : all) queued.job->Fail(status);
}

QueueCounts BatchQueue::counts() const {
  absl::MutexLock lock(&mutex_);
  return waiting_.counts();
}

absl::Duration BatchQueue::Backlog() const {
  absl::MutexLock lock(&mutex_);
  return waiting_.Backlog(clock_.Now());
}

void BatchQueue::Pause() {
  absl::MutexLock lock(&mutex_);
  clock_.AwaitUntil(changed_, mutex_, clock_.Now() + absl::Milliseconds(1));
}

}  // namespace attendant::server
