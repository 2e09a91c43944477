// The end of requests: what is counted, what is logged, and which error a lost caller gets.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Trailers of a refusal that another time might not meet: its reason (refusal.h) and, if it is
// RESOURCE_EXHAUSTED, when to try again, after gRPC proposal A6.
inline constexpr char kReasonTrailer[] = "attendant-reason";
inline constexpr char kRetryPushbackTrailer[] = "grpc-retry-pushback-ms";

// Returns how long a caller who is refused now should wait.
absl::Duration RetryAfter(const ServiceContext& context);
// Returns how long one who is refused with this status should wait; nothing if another try would
// change nothing.
std::optional<absl::Duration> RetryAfter(const absl::Status& status, const ServiceContext& context);

// Returns what the call is finished with, and adds the trailers of an error.
grpc::Status EndOf(const absl::Status& status, const ServiceContext& context,
                   grpc::ServerContextBase& call) noexcept;

// A request while it lives; reported once, when it ends.
class RequestAccount {
 public:
  // `trace` is the traceparent of the call, or empty.
  RequestAccount(std::string method, std::string trace, absl::Time started)
      : trace_(std::move(trace)), started_(started) {
    record_.method = std::move(method);
  }
  // Returns the account of an item that has arrived on the stream of this one.
  RequestAccount ForItem(absl::Time arrived) const {
    return RequestAccount(record_.method, trace_, arrived);
  }

  // A served model's name.
  void SetModel(const std::string& name) { record_.model = name; }

  // Once the request has passed validation.
  void Describe(const ComputeRequest& request);
  void SetQueued(absl::Duration queued) { record_.queued = queued; }

  // Counts it, and logs one line: debug, or warn for an INTERNAL error or a slow request. To be
  // called once the answer is on its way, which should not wait for this. Does nothing if there is
  // no memory for it.
  void Report(const absl::Status& status, const ServiceContext& context) noexcept;

 private:
  void Log(const absl::Status& status, bool slow) const;

  RequestRecord record_;
  std::string request_id_;
  std::string trace_;
  absl::Time started_;
};

// The caller's deadline by `clock`.
absl::Time DeadlineOf(const grpc::ServerContextBase& call, const Clock& clock);

// UNAVAILABLE "the server is draining …".
absl::Status DrainingError();

// The error of a call whose caller does not wait any more: DEADLINE_EXCEEDED, UNAVAILABLE (the
// server drains, so it may be us who ended it), CANCELLED.
absl::Status LostCallerError(const grpc::ServerContextBase& call, const ServiceContext& context);

}  // namespace attendant::server
