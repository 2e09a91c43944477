// WorkerThreads, for work too long for the threads of gRPC and the HTTP port.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

// Thread-safe. The destructor runs the remaining work and waits for it.
class WorkerThreads {
 public:
  explicit WorkerThreads(int threads);
  ~WorkerThreads();

  // Runs `work`, which must not throw, on one of the threads, in the order of the calls as threads
  // become free.
  void Run(absl::AnyInvocable<void()> work);

 private:
  void Serve();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_ || !works_.empty(); }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> works_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace attendant::server
