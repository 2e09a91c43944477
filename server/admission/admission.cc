#include "server/admission/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kResidentAge = absl::Milliseconds(20);
constexpr absl::Duration kLeastRetry = absl::Milliseconds(10);
constexpr absl::Duration kMostRetry = absl::Seconds(10);
constexpr absl::Duration kUnknownRetry = absl::Milliseconds(100);

// Calls `full` only for a refusal, because most requests are admitted.
template <typename Full>
absl::Status StatusOf(Budget::Answer answer, Full full, const char* what) {
  if (answer == Budget::Answer::kTaken) return absl::OkStatus();
  if (answer != Budget::Answer::kShare) return full();
  return Refused(Refusal::kPeerShare,
                 absl::StrCat("the client already has its share of the server's ", what));
}

absl::Status AllTaken(Refusal reason, const char* what, int64_t total, const char* flag) {
  return Refused(reason, absl::StrCat("all ", what, " slots are taken (", total, " of ", total,
                                      ", ", flag, "); retry later"));
}

}  // namespace

absl::Status MemoryFull(const Budget& memory, int64_t own, absl::string_view need) {
  return RefusedFull(Refusal::kMemory, "memory for requests", memory.counts().all() - own,
                     memory.total(), "bytes, --memory-limit-bytes", need);
}

Admission::Admission(AdmissionLimits limits, std::function<int64_t()> resident_bytes,
                     const Clock& clock)
    : limits_(limits),
      resident_bytes_(std::move(resident_bytes)),
      clock_(clock),
      slots_(limits.slots),
      streams_(limits.streams),
      memory_(limits.memory) {}

absl::Status Admission::TakeSlot(const std::string& peer, Budget::Reservation& slot) {
  RETURN_IF_ERROR(CheckOpen());
  const auto full = [&] {
    return AllTaken(Refusal::kSlots, "request", limits_.slots.total, "--max-inflight");
  };
  return StatusOf(slots_.TryTake({peer, 1}, slot), full, "slots");
}

absl::Status Admission::TakeSlotIfFree(const std::string& peer, Budget::Reservation& slot) {
  RETURN_IF_ERROR(CheckOpen());
  slots_.TryTake({peer, 1}, slot);
  return absl::OkStatus();
}

absl::Status Admission::TakeStream(const std::string& peer, Budget::Reservation& stream) {
  RETURN_IF_ERROR(CheckOpen());
  const auto full = [&] {
    return AllTaken(Refusal::kStreams, "stream", limits_.streams.total, "--max-streams");
  };
  return StatusOf(streams_.TryTake({peer, 1}, stream), full, "streams");
}

absl::Status Admission::Charge(const Budget::ReservationRequest& request,
                               Budget::Reservation& reservation) {
  const Budget::Answer answer = reservation.empty()
                                    ? memory_.TryTake(request, reservation)
                                    : reservation.Change(request.amount, request.purpose);
  if (answer == Budget::Answer::kNever) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request would take ", request.amount, " bytes with its response; the server has ",
        memory_.total(), " for all requests (--memory-limit-bytes)"));
  }
  const auto full = [&] {
    return MemoryFull(memory_, reservation.amount(),
                      absl::StrCat("this request with its response needs ", request.amount));
  };
  return StatusOf(answer, full, "memory");
}

absl::Status Admission::ChargeReceived(const Budget::ReservationRequest& request, int64_t exempt,
                                       Budget::Reservation& reservation) {
  const Budget::Answer answer = reservation.empty()
                                    ? memory_.TryTake(request, reservation, exempt)
                                    : reservation.Change(request.amount, request.purpose, exempt);
  const auto full = [&] {
    const std::string need =
        absl::StrCat("the unfinished requests of this connection need ", request.amount);
    if (answer != Budget::Answer::kNever) return MemoryFull(memory_, reservation.amount(), need);
    return Refused(Refusal::kMemory, absl::StrCat(need, " bytes; the server has ", memory_.total(),
                                                  " for all requests (--memory-limit-bytes)"));
  };
  return StatusOf(answer, full, "memory");
}

absl::Status Admission::CheckOpen() {
  if (closed_) return DrainingError();
  if (resident_bytes_ == nullptr || Resident() <= limits_.most_resident_bytes) {
    return absl::OkStatus();
  }
  return Refused(Refusal::kMemory, "the server is short of memory; retry later");
}

int64_t Admission::Resident() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&resident_mutex_);
  if (now >= resident_until_) {
    resident_ = resident_bytes_();
    resident_until_ = now + kResidentAge;
  }
  return resident_;
}

absl::Duration Admission::RetryAfter(absl::Duration backlog) const {
  absl::Duration wait = backlog;
  if (wait <= absl::ZeroDuration()) {
    const int64_t mean = answer_ns_.load(std::memory_order_relaxed);
    wait = mean == 0 ? kUnknownRetry : absl::Nanoseconds(mean);
  }
  return std::clamp(wait, kLeastRetry, kMostRetry);
}

// A lost update is one request less in the mean.
void Admission::ReportAnswered(absl::Duration time) {
  const int64_t mean = answer_ns_.load(std::memory_order_relaxed);
  const int64_t latest = absl::ToInt64Nanoseconds(time);
  answer_ns_.store(mean == 0 ? latest : mean + (latest - mean) / 16, std::memory_order_relaxed);
}

int64_t Admission::AwaitIdle(absl::Duration timeout) const {
  const absl::Time deadline = clock_.Now() + timeout;
  // Streams first: afterwards, none of their items can take a slot.
  const int64_t streams = streams_.AwaitIdle(timeout);
  return streams + slots_.AwaitIdle(std::max(deadline - clock_.Now(), absl::ZeroDuration()));
}

}  // namespace attendant::server
