#include "server/account/request_recorder.h"

#include <spdlog/spdlog.h>

#include "server/base/fault.h"
#include "server/metrics/refusal.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {

absl::Duration RetryAfter(const ServiceContext& context) {
  return context.admission.RetryAfter(context.queue.Backlog());
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status,
                                         const ServiceContext& context) {
  if (!absl::IsResourceExhausted(status) || ReasonOf(status).empty()) return std::nullopt;
  return RetryAfter(context);
}

void RequestRecorder::Describe(const ComputeRequest& request) {
  record_.model = request.span.model->name;
  record_.tokens += request.tokens();
  record_.padded_tokens += request.rows();
  record_.sequences += request.sequences();
  request_id_ = request.request_id;
}

void RequestRecorder::Report(const absl::Status& status, const ServiceContext& context) noexcept {
  Guarded([&] {
    record_.code = status.code();
    record_.reason = ReasonOf(status);
    record_.elapsed = context.clock.Now() - started_;
    context.metrics.RecordRequest(record_);
    const absl::Duration slow = context.limits.slow_request;
    Log(status, slow > absl::ZeroDuration() && record_.elapsed >= slow);
  }).IgnoreError();
}

void RequestRecorder::Log(const absl::Status& status, bool slow) const {
  const bool warns = slow || absl::IsInternal(status);
  const auto level = warns ? spdlog::level::warn : spdlog::level::debug;
  if (!spdlog::should_log(level)) return;
  const auto microseconds = [](absl::Duration time) { return absl::ToInt64Microseconds(time); };
  spdlog::log(level,
              "request ended: method={} model={} id={} trace={} code={} tokens={} queued_us={} "
              "total_us={} {}",
              record_.method, record_.model, Quote(request_id_), trace_,
              absl::StatusCodeToString(status.code()), record_.tokens,
              microseconds(record_.queued.value_or(absl::ZeroDuration())),
              microseconds(record_.elapsed), Quote(std::string(status.message())));
}

}  // namespace attendant::server
