// The end of calls over gRPC: their status with its trailers, and which error a lost caller gets.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Trailers of a refusal that another time might not meet: its reason (refusal.h) and, if it is
// RESOURCE_EXHAUSTED, when to try again, after gRPC proposal A6.
inline constexpr char kReasonTrailer[] = "attendant-reason";
inline constexpr char kRetryPushbackTrailer[] = "grpc-retry-pushback-ms";

// Returns what the call is finished with, and adds the trailers of an error.
grpc::Status EndOf(const absl::Status& status, const ServiceContext& context,
                   grpc::ServerContextBase& call) noexcept;

// The caller's deadline by `clock`.
absl::Time DeadlineOf(const grpc::ServerContextBase& call, const Clock& clock);

// UNAVAILABLE "the server is draining …".
absl::Status DrainingError();

// The error of a call whose caller does not wait any more: DEADLINE_EXCEEDED, UNAVAILABLE (the
// server drains, so it may be us who ended it), CANCELLED.
absl::Status LostCallerError(const grpc::ServerContextBase& call, const ServiceContext& context);

}  // namespace attendant::server
