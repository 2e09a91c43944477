#include "server/batching/job.h"

#include "absl/strings/str_cat.h"

namespace attendant::server {

absl::Status CheckAwaited(const Job& job, absl::Time now) {
  if (job.cancelled != nullptr && job.cancelled->load(std::memory_order_relaxed)) {
    return absl::CancelledError("the client cancelled the request");
  }
  if (job.failed.load(std::memory_order_relaxed)) {
    return absl::CancelledError("another slice of the request failed");
  }
  if (job.deadline <= now) {
    return absl::DeadlineExceededError(absl::StrCat("the deadline passed ",
                                                    absl::FormatDuration(now - job.deadline),
                                                    " ago, before the request was computed"));
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
