// TimeLimit, a call to an object of gRPC's at a point in time.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "server/base/timer.h"

namespace attendant::server {

// Not thread-safe; `expired` is called on the thread of one timer, which all limits share and which
// it must not block. A limit that is reset or set anew may have expired just before, and its call
// may be yet to come: `expired` has to look whether it still means anything.
class TimeLimit {
 public:
  static absl::Time In(absl::Duration duration) { return RealClock().Now() + duration; }

  TimeLimit() = default;
  ~TimeLimit() { Reset(); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // Calls `expired(owner)` at `time`, by RealClock(), if the owner still exists then. Replaces the
  // limit that was set before. False: there is not enough memory for a limit, so there is none.
  template <typename Owner, typename Expired>
  bool Set(absl::Time time, std::weak_ptr<Owner> owner, Expired expired) noexcept {
    Reset();
    try {
      set_ = SharedTimer().Set(time, [owner = std::move(owner), expired = std::move(expired)] {
        if (const auto self = owner.lock()) expired(*self);
      });
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void Reset() {
    if (set_) SharedTimer().Cancel(*set_);
    set_.reset();
  }
  bool set() const { return set_.has_value(); }

 private:
  std::optional<Timer::Ticket> set_;
};

}  // namespace attendant::server
