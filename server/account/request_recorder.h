// RequestRecorder, which counts and logs a request over gRPC or HTTP, and the time after which a
// refused client may retry.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Returns how long a client that is refused now should wait.
absl::Duration RetryAfter(const ServiceContext& context);
// Returns how long a client refused with this status should wait; nullopt if a retry cannot help.
std::optional<absl::Duration> RetryAfter(const absl::Status& status, const ServiceContext& context);

// A request in progress; reported once, when it ends.
class RequestRecorder {
 public:
  // `trace` is the call's traceparent, or empty.
  RequestRecorder(std::string method, std::string trace, absl::Time started)
      : trace_(std::move(trace)), started_(started) {
    record_.method = std::move(method);
  }
  // Returns an account for an item that has arrived on this stream.
  RequestRecorder ForItem(absl::Time arrived) const {
    return RequestRecorder(record_.method, trace_, arrived);
  }

  // Sets the name of a served model.
  void SetModel(const std::string& name) { record_.model = name; }

  // Call when the request, or a further part of it, has passed validation.
  void Describe(const ComputeRequest& request);
  void SetQueued(absl::Duration queued) { record_.queued = queued; }

  // Counts the request and logs one line, at debug level, or as a warning for an INTERNAL error or
  // a slow request. Call it after starting to send the response, which should not wait for it. Does
  // nothing without memory for it.
  void Report(const absl::Status& status, const ServiceContext& context) noexcept;

 private:
  void Log(const absl::Status& status, bool slow) const;

  RequestRecord record_;
  std::string request_id_;
  std::string trace_;
  absl::Time started_;
};

}  // namespace attendant::server
