#include "server/rpc/call/request_end.h"

#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/account/request_recorder.h"
#include "server/base/fault.h"
#include "server/metrics/refusal.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {

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

absl::Time DeadlineOf(const grpc::ServerContextBase& call, const Clock& clock) {
  const std::chrono::system_clock::time_point deadline = call.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return clock.Now() + absl::FromChrono(deadline - std::chrono::system_clock::now());
}

absl::Status LostCallerError(const grpc::ServerContextBase& call, const ServiceContext& context) {
  if (call.deadline() <= std::chrono::system_clock::now()) {
    return absl::DeadlineExceededError("the deadline passed before the response was ready");
  }
  if (context.admission.closed()) return DrainingError();
  return absl::CancelledError("the client has disconnected");
}

}  // namespace attendant::server
