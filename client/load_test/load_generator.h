// LoadGenerator, which sends requests in a closed or an open loop.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load_requests/workload.h"
#include "client/load_test/arrival_schedule.h"
#include "client/load_test/load_clock.h"
#include "client/load_test/recorder.h"
#include "client/load_test/request_log.h"

namespace attendant::client {

// When to send requests, and for how long.
struct LoadPlan {
  // Open loop: requests are sent when they are due, however many are in flight. If absent, the loop
  // is closed.
  std::optional<ArrivalSchedule> schedule;
  // Closed loop: this many requests are always in flight; each answer triggers the next one.
  int concurrency = 1;
  // Requests that are due during the warm-up are sent, but not measured. The measurement then ends
  // after `duration` or after `requests`, whichever comes first.
  absl::Duration warmup = absl::ZeroDuration();
  absl::Duration duration = absl::InfiniteDuration();
  int64_t requests = std::numeric_limits<int64_t>::max();
};

// The objects and functions that the generator works with. They must outlive it.
struct LoadContext {
  using Done = std::function<void(absl::StatusOr<Execution>)>;

  const Workload& workload;
  // Sends `item` as the request with this index. Must not wait; `done` runs later, exactly once, on
  // any thread.
  std::function<void(int64_t index, const WorkItem& item, Done done)> send;
  LoadClock& clock;
  Recorder& recorder;
  // Called by Run about every 20 ms; false stops the sending.
  std::function<bool()> tick;
  // Receives a record of every request, including the warm-up; optional.
  RequestLog* log = nullptr;
};

// Runs one plan. Run is called once, by one thread; answers may come on any thread.
class LoadGenerator {
 public:
  LoadGenerator(LoadPlan plan, LoadContext context);

  // Returns when every request that was sent has been answered.
  void Run();

  // Returns when the measurement began. To be called after Run.
  absl::Time measured_from() const { return measured_from_; }
  // Returns the end of an open loop that ran for its whole duration, although its last request may
  // be due and answered long before; otherwise measured_from().
  absl::Time measured_until() const { return measured_until_; }

 private:
  // The index of a request, and whether it is measured.
  struct Ticket {
    int64_t index;
    bool measured;
  };

  void RunOpenLoop();
  // Sends a request that was due at `intended`. Returns false, and sends nothing, if the plan has
  // ended.
  bool SendOne(absl::Time intended);
  std::optional<Ticket> Admit(absl::Time intended);
  void Answered(const Ticket& ticket, RequestTimes times, const absl::StatusOr<Execution>& answer);
  void Log(const Ticket& ticket, const RequestTimes& times,
           const absl::StatusOr<Execution>& answer) const;
  void Tick();
  bool complete() const;
  int64_t in_flight() const;

  LoadPlan plan_;
  LoadContext context_;
  absl::Time measured_from_;
  absl::Time measured_until_;
  absl::Time end_;
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t measured_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant::client
