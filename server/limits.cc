#include "server/limits.h"

#include <algorithm>

namespace attendant::server {

QueueLimits QueueLimitsOf(const Settings& settings) {
  QueueLimits limits;
  limits.max_jobs = settings.max_queue_requests;
  limits.max_tokens = settings.max_queue_tokens;
  limits.max_seconds = settings.max_queue_seconds;
  limits.reserved_jobs = WithReserve(limits.max_jobs, settings).reserve;
  limits.default_deadline = settings.default_deadline;
  return limits;
}

BatchLimits BatchLimitsOf(const Settings& settings, const ThreadPlan& plan) {
  return {settings.max_batch_tokens, settings.max_batch_seconds, settings.max_queue_delay,
          plan.instances};
}

BudgetLimits WithReserve(int64_t total, const Settings& settings) {
  return {total, total / 100 * settings.peer_reserve + total % 100 * settings.peer_reserve / 100};
}

AdmissionLimits AdmissionLimitsOf(const Settings& settings, const MemoryLimit& limit) {
  AdmissionLimits limits;
  limits.slots = WithReserve(settings.max_inflight, settings);
  limits.streams = WithReserve(settings.max_streams, settings);
  limits.most_resident_bytes = limit.bytes / 100 * 95;
  return limits;
}

HttpLimits HttpLimitsOf(const Settings& settings, HttpLimits limits) {
  limits.calls = static_cast<int>(std::min<int64_t>(settings.max_inflight, limits.calls));
  limits.idle_timeout = settings.http_idle_timeout;
  limits.receive_timeout = settings.receive_timeout;
  limits.min_receive_rate = settings.min_receive_rate;
  limits.send_timeout = settings.send_timeout;
  return limits;
}

}  // namespace attendant::server
