#include "server/execution/request_job.h"

namespace attendant::server {

absl::Status CheckAwaited(const Job& job, absl::Time now) {
  if (job.cancelled()) return absl::CancelledError("the caller is gone");
  if (job.deadline <= now) {
    return absl::DeadlineExceededError("the deadline passed before the request was computed");
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
