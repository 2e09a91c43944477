// RequestAccount: what is counted and logged of a request, however it came; and when a refused one
// may come again.
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

// Returns how long a caller who is refused now should wait.
absl::Duration RetryAfter(const ServiceContext& context);
// Returns how long one who is refused with this status should wait; nothing if another try would
// change nothing.
std::optional<absl::Duration> RetryAfter(const absl::Status& status, const ServiceContext& context);

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

  // Once the request, or a further part of it, has passed validation.
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

}  // namespace attendant::server
