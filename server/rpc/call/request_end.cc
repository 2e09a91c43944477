#include "server/rpc/call/request_end.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/fault.h"
#include "server/execution/compute_job.h"
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

grpc::Status EndOf(const absl::Status& status, const ServiceContext& context,
                   grpc::ServerContextBase& call) noexcept {
  // If there is no memory for texts, the code has to do.
  grpc::Status end(static_cast<grpc::StatusCode>(status.code()), "");
  if (status.ok()) return end;
  Guarded([&] {
    end = ToGrpcStatus(status);
    const std::string reason = ReasonOf(status);
    if (!reason.empty()) call.AddTrailingMetadata(kReasonTrailer, reason);
    const std::optional<absl::Duration> wait = RetryAfter(status, context);
    if (!wait) return;
    call.AddTrailingMetadata(kRetryPushbackTrailer, absl::StrCat(absl::ToInt64Milliseconds(*wait)));
  }).IgnoreError();
  return end;
}

void RequestAccount::Describe(const ComputeRequest& request) {
  record_.model = request.span.model->name;
  record_.tokens = request.tokens();
  record_.padded_tokens = request.rows();
  record_.sequences = request.sequences();
  request_id_ = request.request_id;
}

void RequestAccount::Report(const absl::Status& status, const ServiceContext& context) noexcept {
  Guarded([&] {
    record_.code = status.code();
    record_.reason = ReasonOf(status);
    record_.elapsed = context.clock.Now() - started_;
    context.metrics.RecordRequest(record_);
    const absl::Duration slow = context.limits.slow_request;
    Log(status, slow > absl::ZeroDuration() && record_.elapsed >= slow);
  }).IgnoreError();
}

void RequestAccount::Log(const absl::Status& status, bool slow) const {
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

absl::Time DeadlineOf(const grpc::ServerContextBase& call, const Clock& clock) {
  const std::chrono::system_clock::time_point deadline = call.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return clock.Now() + absl::FromChrono(deadline - std::chrono::system_clock::now());
}

absl::Status DrainingError() {
  return Refused(Refusal::kDraining, "the server is draining; try another one");
}

absl::Status LostCallerError(const grpc::ServerContextBase& call, const ServiceContext& context) {
  if (call.deadline() <= std::chrono::system_clock::now()) {
    return absl::DeadlineExceededError("the deadline passed before the answer was ready");
  }
  if (context.admission.closed()) return DrainingError();
  return absl::CancelledError("the caller is gone");
}

}  // namespace attendant::server
