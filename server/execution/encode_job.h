// One request of this service on its way through the queue.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "server/batching/job.h"
#include "server/execution/response.h"
#include "server/request/compute_request.h"

namespace attendant::server {

// The end of a job: a response, or the error instead of one.
struct JobResponse {
  absl::StatusOr<Response> response;
  absl::Duration queued;  // of computed jobs
};

// Every job of the service's queue is one of these.
class EncodeJob final : public Job {
 public:
  // `done` is called exactly once, by Fail or Finish, on their thread. The request and what it
  // holds (payloads, registered keys) are released first, so that a caller who has the response
  // finds their room free. `cancelled` is set once the caller is gone.
  EncodeJob(ComputeRequest request, std::shared_ptr<const std::atomic<bool>> cancelled,
            std::function<void(JobResponse)> done)
      : request_(std::move(request)), cancelled_(std::move(cancelled)), done_(std::move(done)) {
    key = request_->key();
    tokens = request_->tokens();
  }

  // Before Fail or Finish.
  const ComputeRequest& request() const { return *request_; }

  bool cancelled() const override { return cancelled_->load(std::memory_order_relaxed); }
  void Fail(const absl::Status& status) override { End({status, absl::ZeroDuration()}); }
  void Finish(Response response, absl::Duration queued) { End({std::move(response), queued}); }

 private:
  void End(JobResponse result) {
    request_.reset();
    done_(std::move(result));
  }

  std::optional<ComputeRequest> request_;
  const std::shared_ptr<const std::atomic<bool>> cancelled_;
  const std::function<void(JobResponse)> done_;
};

}  // namespace attendant::server
