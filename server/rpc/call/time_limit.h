// TimeLimit, a call to an object of gRPC's at a point in time.
#pragma once

#include <grpcpp/alarm.h>

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace attendant::server {

// Not thread-safe; `expired` is called on a thread of gRPC's. A limit that is reset or set anew may
// have expired just before, and its call may be yet to come: `expired` has to look whether it still
// means anything.
class TimeLimit {
 public:
  using TimePoint = std::chrono::system_clock::time_point;

  static TimePoint In(absl::Duration duration) {
    return std::chrono::system_clock::now() + absl::ToChronoNanoseconds(duration);
  }

  // Calls `expired(owner)` at `time` if the owner still exists then. Replaces the limit that was
  // set before. False: there is not enough memory for a limit, so there is none.
  template <typename Owner, typename Expired>
  bool Set(TimePoint time, std::weak_ptr<Owner> owner, Expired expired) noexcept {
    try {
      // A new alarm each time, as the call of the one before may be yet to come.
      alarm_.emplace();
      alarm_->Set(time, [owner = std::move(owner), expired = std::move(expired)](bool ok) {
        if (!ok) return;  // it was reset
        if (const auto self = owner.lock()) expired(*self);
      });
      return true;
    } catch (const std::bad_alloc&) {
      alarm_.reset();
      return false;
    }
  }

  void Reset() { alarm_.reset(); }
  bool set() const { return alarm_.has_value(); }

 private:
  std::optional<grpc::Alarm> alarm_;
};

}  // namespace attendant::server
