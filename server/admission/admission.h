// Admission control: slots, streams and memory for calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
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

// RESOURCE_EXHAUSTED "the memory for requests is full (<used> of <limit> bytes,
// --memory-limit-bytes); <need>; retry later", where <used> does not include the `own` bytes of the
// refused request.
absl::Status MemoryFull(const Budget& memory, int64_t own, absl::string_view need);

// Bounds the work in flight. Each request holds a slot from its headers, or from the arrival of a
// stream's item, until its response is sent; each stream holds a stream slot; and all share a
// memory budget. An idle stream holds no slot, and a stream with a single item in flight needs
// none.
//
// Thread-safe. Reservations may outlive it.
class Admission {
 public:
  // `resident_bytes` returns the resident memory of the process, on any thread. It is called at
  // most every few milliseconds by `clock`, which must outlive this object.
  explicit Admission(AdmissionLimits limits, std::function<int64_t()> resident_bytes = nullptr,
                     const Clock& clock = RealClock());

  // Return RESOURCE_EXHAUSTED or, after Close, UNAVAILABLE, with a reason
  // (server/metrics/refusal.h).
  absl::Status TakeSlot(const std::string& peer, Budget::Reservation& slot);
  absl::Status TakeStream(const std::string& peer, Budget::Reservation& stream);
  // Like TakeSlot, but returns OK without a slot if none is free.
  absl::Status TakeSlotIfFree(const std::string& peer, Budget::Reservation& slot);

  // Changes `reservation`, which is empty or of memory(), to `request` bytes. Returns
  // RESOURCE_EXHAUSTED with a reason if there is no room now, and INVALID_ARGUMENT if there never
  // will be.
  absl::Status Charge(const Budget::ReservationRequest& request, Budget::Reservation& reservation);

  // Like Charge, for bytes of requests being received, but returns RESOURCE_EXHAUSTED for any
  // request that cannot be met. For `exempt`, see Budget::Reservation::Change.
  absl::Status ChargeReceived(const Budget::ReservationRequest& request, int64_t exempt,
                              Budget::Reservation& reservation);

  AwaitedMessages& awaited_messages() { return awaited_messages_; }
  // Bounds the open health watches.
  Budget& health_watches() { return health_watches_; }
  // Bounds the open reflection streams.
  Budget& reflection_streams() { return reflection_streams_; }
  Budget& memory() { return memory_; }
  const Budget& memory() const { return memory_; }
  const Budget& slots() const { return slots_; }
  const Budget& streams() const { return streams_; }

  // Returns how long a refused client should wait: for the queue's `backlog` (BatchQueue::Backlog),
  // within 10 ms to 10 s. With an empty backlog, about as long as recent requests took from their
  // headers to their response.
  absl::Duration RetryAfter(absl::Duration backlog) const;
  void ReportAnswered(absl::Duration time);

  // Starts draining: gives out no further slots or streams. Requests that hold one still get
  // memory.
  void Close() { closed_ = true; }
  bool closed() const { return closed_; }

  // See AdmissionLimits.
  int64_t most_resident_bytes() const { return limits_.most_resident_bytes; }

  // Waits until no stream or slot is held, at most for `timeout`. Returns the number still held.
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
  Budget reflection_streams_{{6, 2}};  // a single client gets four
  std::atomic<bool> closed_ = false;

  absl::Mutex resident_mutex_;
  absl::Time resident_until_ ABSL_GUARDED_BY(resident_mutex_) = absl::InfinitePast();
  int64_t resident_ ABSL_GUARDED_BY(resident_mutex_) = 0;
  std::atomic<int64_t> answer_ns_ = 0;  // decaying mean; 0 before the first response
};

}  // namespace attendant::server
