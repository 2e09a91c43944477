#include "server/execution/batch_completer.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "server/base/fault.h"

namespace attendant::server {

void ComputedBatch::Complete() noexcept {
  for (EntryRun& entry : entries) {
    if (entry.ended()) continue;
    const absl::Status status = Guarded([&] { entry.Finish(report); });
    if (!status.ok() && !entry.ended()) entry.Fail(status);
  }
  Guarded([&] { report.Record(); }).IgnoreError();  // one that cannot be counted fails nothing
}

BatchCompleter::BatchCompleter() {
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    return;
  }
  absl::MutexLock lock(&mutex_);
  free_ = true;
}

BatchCompleter::~BatchCompleter() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void BatchCompleter::Complete(ComputedBatch batch) noexcept {
  {
    absl::MutexLock lock(&mutex_);
    if (free_) {
      free_ = false;
      batch_.emplace(std::move(batch));
      return;
    }
  }
  batch.Complete();
}

void BatchCompleter::Run() {
  pthread_setname_np(pthread_self(), "batch-completer");
  while (true) {
    std::optional<ComputedBatch> batch;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &BatchCompleter::HasWork));
      if (!batch_) return;
      batch.emplace(*std::move(batch_));
      batch_.reset();
    }
    batch->Complete();
    batch.reset();
    absl::MutexLock lock(&mutex_);
    free_ = true;
  }
}

}  // namespace attendant::server
