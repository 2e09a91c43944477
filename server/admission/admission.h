// Admission control: what a call needs before it is worked on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admission/awaited_messages.h"
#include "server/admission/budget.h"
#include "server/base/clock.h"

namespace attendant::server {

struct AdmissionLimits {
  BudgetLimits slots = {64};
  BudgetLimits streams = {64};
  BudgetLimits memory = {int64_t{64} << 20};  // bytes
  // Resident memory of the process, in bytes, above which new work is refused.
  int64_t most_resident_bytes = std::numeric_limits<int64_t>::max();
};

// Bounds what is in flight: a slot for each request from its headers, or from the arrival of a
// stream's item, until its answer has left; a stream each; and the memory of them all. An idle
// stream holds no slot, and one with a single item in flight needs none.
//
// Thread-safe. What it has given out may outlive it.
class Admission {
 public:
  // `resident_bytes` returns the resident memory of the process, on any thread. It is asked at most
  // every few milliseconds by `clock`, which outlives this.
  explicit Admission(AdmissionLimits limits, std::function<int64_t()> resident_bytes = nullptr,
                     const Clock& clock = RealClock());

  // RESOURCE_EXHAUSTED, and UNAVAILABLE after Close, with the reason (server/metrics/refusal.h).
  absl::Status TakeSlot(const std::string& peer, Budget::Hold& slot);
  absl::Status TakeStream(const std::string& peer, Budget::Hold& stream);
  // As TakeSlot, but OK without one if none can be had.
  absl::Status TakeSlotIfFree(const std::string& peer, Budget::Hold& slot);

  // Makes `hold`, of memory() or nothing yet, one of what is claimed, in bytes. RESOURCE_EXHAUSTED
  // with the reason if there is no room; INVALID_ARGUMENT if there can never be.
  absl::Status Charge(const Budget::Claim& claim, Budget::Hold& hold);

  // As Charge, for bytes of requests that are still being received: a claim that can never be met
  // is RESOURCE_EXHAUSTED too. `exempt` is the argument of Budget::Hold::Change.
  absl::Status ChargeReceived(const Budget::Claim& claim, int64_t exempt, Budget::Hold& hold);

  AwaitedMessages& awaited_messages() { return awaited_messages_; }
  // Bounds the open health watches.
  Budget& health_watches() { return health_watches_; }
  // Bounds how many streams of reflection are open.
  Budget& reflection_streams() { return reflection_streams_; }
  Budget& memory() { return memory_; }
  const Budget& memory() const { return memory_; }
  const Budget& slots() const { return slots_; }
  const Budget& streams() const { return streams_; }

  // How long a refused caller should wait: for the `backlog` of the queue (BatchQueue::Backlog), in
  // 10 ms to 10 s. If that is zero, what is full holds no predicted work, and the wait is about as
  // long as requests took lately, from their headers until they were answered.
  absl::Duration RetryAfter(absl::Duration backlog) const;
  void ReportAnswered(absl::Duration time);

  // Starts draining: no slot and no stream is given from now on. Requests that hold one already
  // still get their memory.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // As in AdmissionLimits.
  int64_t most_resident_bytes() const { return limits_.most_resident_bytes; }

  // Waits until no stream and no slot is taken, but at most for `timeout`. Returns the number of
  // those that still are.
  int64_t AwaitIdle(absl::Duration timeout) const;

 private:
  absl::Status CheckOpen();
  int64_t Resident();

  const AdmissionLimits limits_;
  const std::function<int64_t()> resident_bytes_;
  const Clock& clock_;
  Budget slots_;
  Budget streams_;
  Budget memory_;
  AwaitedMessages awaited_messages_{512};
  Budget health_watches_{{1024, 256}};
  Budget reflection_streams_{{6, 2}};  // a caller alone has four
  std::atomic<bool> closed_ = false;

  absl::Mutex resident_mutex_;
  absl::Time resident_until_ ABSL_GUARDED_BY(resident_mutex_) = absl::InfinitePast();
  int64_t resident_ ABSL_GUARDED_BY(resident_mutex_) = 0;
  std::atomic<int64_t> answer_ns_ = 0;  // a mean that forgets; 0: nothing was answered yet
};

}  // namespace attendant::server
