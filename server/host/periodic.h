// Periodic, which calls a function at intervals.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant::server {

// Calls a function at intervals, on a thread of its own, first after one interval. An exception,
// such as std::bad_alloc, only ends that call.
class Periodic {
 public:
  Periodic(absl::Duration interval, std::function<void()> call);
  // Waits for a running call; none follows.
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  void Run();

  const absl::Duration interval_;
  const std::function<void()> call_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant::server
