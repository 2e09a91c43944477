#include "client/load_test/arrival_schedule.h"

#include <utility>

namespace attendant::client {

ArrivalSchedule::ArrivalSchedule(Arrival arrival, double rate, uint64_t seed)
    : arrival_(arrival), rate_(rate), random_(seed), gap_(rate) {}

ArrivalSchedule::ArrivalSchedule(std::shared_ptr<const std::vector<double>> times, double speed)
    : times_(std::move(times)), rate_(speed) {}

absl::Duration ArrivalSchedule::Next() {
  if (times_ != nullptr) {
    const auto next = static_cast<size_t>(sent_++);
    return next < times_->size() ? absl::Seconds((*times_)[next] / rate_)
                                 : absl::InfiniteDuration();
  }
  const absl::Duration due = absl::Seconds(seconds_);
  ++sent_;
  seconds_ = arrival_ == Arrival::kConstant ? static_cast<double>(sent_) / rate_
                                            : seconds_ + gap_(random_);
  return due;
}

}  // namespace attendant::client
