#include "client/load_test/timeline.h"

#include <algorithm>

namespace attendant::client {

size_t Timeline::SecondOf(absl::Time time) {
  const auto second =
      static_cast<size_t>(std::max<int64_t>(0, absl::ToInt64Seconds(time - start_)));
  if (second >= seconds_.size()) seconds_.resize(second + 1);
  return second;
}

void Timeline::FinishCurrent() {
  if (latency_.count() == 0) return;
  seconds_[current_].p50 = latency_.Percentile(50);
  seconds_[current_].p99 = latency_.Percentile(99);
}

void Timeline::Record(const RequestTimes& times, const absl::StatusOr<Execution>& answer) {
  if (start_ == absl::InfiniteFuture()) return;
  ++seconds_[SecondOf(times.sent)].sent;
  const size_t second = SecondOf(times.answered);
  if (second > current_) {
    FinishCurrent();
    latency_ = Histogram();
    current_ = second;
  }
  SecondOfLoad& current = seconds_[current_];
  latency_.Record(times.answered - times.intended);
  if (!answer.ok()) {
    ++current.errors[answer.status().code()];
    return;
  }
  ++current.ok;
  current.queue += answer->queue;
  current.copy += answer->copy;
  current.compute += answer->compute;
  current.batch_requests += answer->batch_requests;
}

std::vector<SecondOfLoad> Timeline::Seconds() const {
  Timeline finished = *this;
  finished.FinishCurrent();
  return finished.seconds_;
}

}  // namespace attendant::client
