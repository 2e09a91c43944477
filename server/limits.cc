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

ServiceLimits ServiceLimitsOf(const Settings& settings, int64_t max_request_bytes) {
  ServiceLimits limits;
  limits.max_request_tokens = settings.max_request_tokens;
  limits.max_answer_bytes = settings.max_answer_bytes;
  limits.max_request_bytes = max_request_bytes;
  limits.max_batch_tokens = settings.max_batch_tokens;
  limits.max_batch_seconds = settings.max_batch_seconds;
  limits.receive_timeout = settings.receive_timeout;
  limits.min_receive_rate = settings.min_receive_rate;
  limits.send_timeout = settings.send_timeout;
  limits.slow_request = settings.slow_request;
  limits.trusted_proxies = settings.trusted_proxies;
  limits.stream_idle_timeout = settings.stream_idle_timeout;
  limits.stream_window = settings.stream_window;
  limits.reject_nonfinite = settings.nonfinite == NonfinitePolicy::kReject;
  return limits;
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
