#include "server/host/signals.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kSameSignal = absl::Milliseconds(500);

// The thread that uses them runs until the process ends.
ABSL_CONST_INIT absl::Mutex stop_mutex(absl::kConstInit);
bool keeps_stop ABSL_GUARDED_BY(stop_mutex) = false;
absl::Time first_stop ABSL_GUARDED_BY(stop_mutex) = absl::InfiniteFuture();

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

void Watch() {
  const sigset_t set = Signals();
  for (int signal; sigwait(&set, &signal) == 0;) {
    const absl::Time now = RealClock().Now();
    absl::MutexLock lock(&stop_mutex);
    if (!keeps_stop || now - first_stop >= kSameSignal) _exit(128 + signal);
    first_stop = std::min(first_stop, now);
  }
}

}  // namespace

void TakeStopSignals() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // Writing to a closed connection should return an error instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::thread(Watch).detach();
}

void KeepStopSignal() {
  absl::MutexLock lock(&stop_mutex);
  keeps_stop = true;
}

void AwaitStopSignal() {
  const auto arrived = []() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return first_stop != absl::InfiniteFuture();
  };
  absl::MutexLock lock(&stop_mutex);
  stop_mutex.Await(absl::Condition(&arrived));
}

}  // namespace attendant::server
