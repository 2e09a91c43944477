#include "server/host/signals.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kSameSignal = absl::Milliseconds(500);

// The state is never destroyed, because the thread that uses it runs until the process ends.
struct StopSignals {
  absl::Mutex mutex;
  bool kept ABSL_GUARDED_BY(mutex) = false;
  absl::Time first ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
};

StopSignals& State() {
  static auto& state = *new StopSignals();
  return state;
}

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

void Watch(const Clock& clock) {
  StopSignals& state = State();
  const sigset_t set = Signals();
  for (int signal; sigwait(&set, &signal) == 0;) {
    const absl::Time now = clock.Now();
    absl::MutexLock lock(&state.mutex);
    if (!state.kept || now - state.first >= kSameSignal) _exit(128 + signal);
    state.first = std::min(state.first, now);
  }
}

}  // namespace

void TakeStopSignals(const Clock& clock) {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // Writing to a closed connection should return an error instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::thread(Watch, std::cref(clock)).detach();
}

void KeepStopSignal() {
  absl::MutexLock lock(&State().mutex);
  State().kept = true;
}

void AwaitStopSignal() {
  StopSignals& state = State();
  const auto arrived = [&state]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return state.first != absl::InfiniteFuture();
  };
  absl::MutexLock lock(&state.mutex);
  state.mutex.Await(absl::Condition(&arrived));
}

}  // namespace attendant::server
