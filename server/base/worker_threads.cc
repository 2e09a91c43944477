#include "server/base/worker_threads.h"

#include <utility>

namespace attendant::server {

WorkerThreads::WorkerThreads(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Serve(); });
}

WorkerThreads::~WorkerThreads() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::Run(absl::AnyInvocable<void()> work) {
  absl::MutexLock lock(&mutex_);
  works_.push_back(std::move(work));
}

void WorkerThreads::Serve() {
  while (true) {
    absl::AnyInvocable<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &WorkerThreads::HasWork));
      if (works_.empty()) return;
      work = std::move(works_.front());
      works_.pop_front();
    }
    work();
  }
}

}  // namespace attendant::server
