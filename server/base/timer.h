// Timer, a thread that runs callbacks at given times.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"

namespace attendant::server {

// Thread-safe. Most callbacks are cancelled before their time, at no cost to other threads: the
// thread sleeps until the earliest time known when it fell asleep. A grpc::Alarm would wake a gRPC
// thread for each callback, even if cancelled.
class Timer {
 public:
  // Identifies a callback.
  using Ticket = std::pair<absl::Time, uint64_t>;

  // `clock` must outlive the timer.
  explicit Timer(Clock& clock);
  // Drops pending callbacks, and waits for a running one.
  ~Timer();

  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Runs `call` at `time`, or at once if that has passed, on the timer's thread, which it must not
  // block. Throws std::bad_alloc.
  Ticket Set(absl::Time time, std::function<void()> call);

  // Cancels and destroys the callback, unless it is running or has run.
  void Cancel(const Ticket& ticket);

 private:
  void Run();

  Clock& clock_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<Ticket, std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time wakes_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // the thread, by itself
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Returns the timer of the process, by RealClock(). The first use starts its thread, and throws
// std::system_error if it cannot be started.
Timer& SharedTimer();

}  // namespace attendant::server
