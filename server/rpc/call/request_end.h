// The end of gRPC calls: status and trailers, and the errors of disconnected clients.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Trailers of a refusal that a later attempt may avoid: its reason (refusal.h) and, for
// RESOURCE_EXHAUSTED, when to retry (gRPC proposal A6).
inline constexpr char kReasonTrailer[] = "attendant-reason";
inline constexpr char kRetryPushbackTrailer[] = "grpc-retry-pushback-ms";

// Returns the final status of the call, and adds the trailers of an error.
grpc::Status EndOf(const absl::Status& status, const ServiceContext& context,
                   grpc::ServerContextBase& call) noexcept;

// Returns the client's deadline by `clock`.
absl::Time DeadlineOf(const grpc::ServerContextBase& call, const Clock& clock);

// Returns the error of a call whose client no longer waits: DEADLINE_EXCEEDED, UNAVAILABLE (while
// draining, the server may have ended the call) or CANCELLED.
absl::Status LostCallerError(const grpc::ServerContextBase& call, const ServiceContext& context);

}  // namespace attendant::server
