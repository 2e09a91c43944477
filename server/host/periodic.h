// Periodic, which does something again and again.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant::server {

// Calls a function at intervals, on a thread of its own. The first call comes after an interval.
// A call that throws, for want of memory, is over.
class Periodic {
 public:
  Periodic(absl::Duration interval, std::function<void()> call);
  // Waits for a call that is under way; none comes afterwards.
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
