#include "client/load_test/recorder.h"

#include <algorithm>
#include <utility>

namespace attendant::client {

int64_t Statistics::error_count() const {
  int64_t count = 0;
  for (const auto& [code, times] : errors) count += times;
  return count;
}

void Statistics::Merge(const Statistics& other) {
  ok += other.ok;
  for (const auto& [code, times] : other.errors) errors[code] += times;
  first_error.Update(other.first_error);
  in_time += other.in_time;
  tokens += other.tokens;
  latency.Merge(other.latency);
  send_lag.Merge(other.send_lag);
  ok_latency += other.ok_latency;
  queue += other.queue;
  copy += other.copy;
  compute += other.compute;
  batch_tokens += other.batch_tokens;
  batch_requests += other.batch_requests;
  last_answer = std::max(last_answer, other.last_answer);
}

void Recorder::Begin(absl::Time start) {
  absl::MutexLock lock(&mutex_);
  timeline_.Begin(start);
}

void Recorder::Record(const RequestTimes& times, int64_t tokens,
                      const absl::StatusOr<Execution>& answer) {
  const absl::Duration latency = times.answered - times.intended;
  absl::MutexLock lock(&mutex_);
  timeline_.Record(times, answer);
  interval_.latency.Record(latency);
  interval_.send_lag.Record(times.sent - times.intended);
  interval_.last_answer = std::max(interval_.last_answer, times.answered);
  if (!answer.ok()) {
    ++interval_.errors[answer.status().code()];
    interval_.first_error.Update(answer.status());
    return;
  }
  ++interval_.ok;
  interval_.in_time += latency <= deadline_ ? 1 : 0;
  interval_.tokens += tokens;
  interval_.ok_latency += latency;
  interval_.queue += answer->queue;
  interval_.copy += answer->copy;
  interval_.compute += answer->compute;
  interval_.batch_tokens += answer->batch_tokens;
  interval_.batch_requests += answer->batch_requests;
}

void Recorder::RecordWarmup() {
  absl::MutexLock lock(&mutex_);
  ++warmup_requests_;
}

Statistics Recorder::TakeInterval() {
  absl::MutexLock lock(&mutex_);
  before_.Merge(interval_);
  return std::exchange(interval_, Statistics());
}

Statistics Recorder::Total() const {
  absl::MutexLock lock(&mutex_);
  Statistics total = before_;
  total.Merge(interval_);
  return total;
}

std::vector<SecondOfLoad> Recorder::Seconds() const {
  absl::MutexLock lock(&mutex_);
  return timeline_.Seconds();
}

int64_t Recorder::warmup_requests() const {
  absl::MutexLock lock(&mutex_);
  return warmup_requests_;
}

}  // namespace attendant::client
