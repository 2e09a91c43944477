#include "server/base/timer.h"

#include <pthread.h>

#include <utility>

namespace attendant::server {

Timer::Timer(Clock& clock) : clock_(clock), thread_([this] { Run(); }) {}

Timer::~Timer() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
    changed_.Signal();
  }
  thread_.join();
}

Timer::Ticket Timer::Set(absl::Time time, std::function<void()> call) {
  absl::MutexLock lock(&mutex_);
  const Ticket ticket(time, next_++);
  calls_.emplace(ticket, std::move(call));
  if (time < wakes_) changed_.Signal();
  return ticket;
}

void Timer::Cancel(const Ticket& ticket) {
  std::map<Ticket, std::function<void()>>::node_type call;  // destroyed without the mutex
  absl::MutexLock lock(&mutex_);
  call = calls_.extract(ticket);
}

void Timer::Run() {
  pthread_setname_np(pthread_self(), "timer");
  while (true) {
    std::map<Ticket, std::function<void()>>::node_type due;
    {
      absl::MutexLock lock(&mutex_);
      while (!ends_ && (calls_.empty() || calls_.begin()->first.first > clock_.Now())) {
        wakes_ = calls_.empty() ? absl::InfiniteFuture() : calls_.begin()->first.first;
        clock_.AwaitUntil(changed_, mutex_, wakes_);
      }
      wakes_ = absl::InfinitePast();
      if (ends_) return;
      due = calls_.extract(calls_.begin());
    }
    due.mapped()();
  }
}

Timer& SharedTimer() {
  // Never destroyed, as calls may end while the process does.
  static Timer& timer = *new Timer(RealClock());
  return timer;
}

}  // namespace attendant::server
