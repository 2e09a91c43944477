// Timer, a thread that makes calls at points in time.
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

// Thread-safe. Most calls are cancelled before their time, and cost no other thread anything: the
// thread sleeps until the earliest time that it knew of when it fell asleep. A grpc::Alarm in this
// place wakes a thread of gRPC's for each that is set, also when it is cancelled.
class Timer {
 public:
  // Names a call that has been set.
  using Ticket = std::pair<absl::Time, uint64_t>;

  // `clock` outlives the timer.
  explicit Timer(Clock& clock);
  // Drops the calls that have not been made, and waits for one under way.
  ~Timer();

  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Has `call` made at `time`, or at once if that has passed, on the thread of the timer, which it
  // must not block. Throws std::bad_alloc.
  Ticket Set(absl::Time time, std::function<void()> call);

  // The call is not made, but it may be under way or over. It is destroyed here in the first case.
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
// std::system_error if there can be none.
Timer& SharedTimer();

}  // namespace attendant::server
