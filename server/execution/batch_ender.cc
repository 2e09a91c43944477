#include "server/execution/batch_ender.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "server/base/fault.h"

namespace attendant::server {

void ComputedBatch::End() noexcept {
  for (BatchJob& job : jobs) {
    if (job.ended()) continue;
    const absl::Status status = Guarded([&] { job.Finish(report); });
    if (!status.ok() && !job.ended()) job.Fail(status);
  }
  Guarded([&] { report.Record(); }).IgnoreError();  // one that cannot be counted fails nothing
}

BatchEnder::BatchEnder() {
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    return;
  }
  absl::MutexLock lock(&mutex_);
  free_ = true;
}

BatchEnder::~BatchEnder() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void BatchEnder::End(ComputedBatch batch) noexcept {
  {
    absl::MutexLock lock(&mutex_);
    if (free_) {
      free_ = false;
      batch_.emplace(std::move(batch));
      return;
    }
  }
  batch.End();
}

void BatchEnder::Run() {
  pthread_setname_np(pthread_self(), "batch-ender");
  while (true) {
    std::optional<ComputedBatch> batch;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &BatchEnder::HasWork));
      if (!batch_) return;
      batch.emplace(*std::move(batch_));
      batch_.reset();
    }
    batch->End();
    batch.reset();
    absl::MutexLock lock(&mutex_);
    free_ = true;
  }
}

}  // namespace attendant::server
