// One request of this service on its way through the queue.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "server/batching/job.h"
#include "server/execution/answer.h"
#include "server/request/compute_request.h"

namespace attendant::server {

// How a job ended.
struct JobOutcome {
  absl::StatusOr<Answer> answer;
  absl::Duration queued;  // of computed jobs
};

// Every job of the service's queue is one of these.
class EncodeJob final : public Job {
 public:
  // `done` is called exactly once, by Fail or Finish, on their thread. The request and what it
  // holds (payloads, memories) are released first, so that a caller who has the answer finds their
  // room free. `cancelled` is set once the caller is gone.
  EncodeJob(ComputeRequest request, std::shared_ptr<const std::atomic<bool>> cancelled,
            std::function<void(JobOutcome)> done)
      : request_(std::move(request)), cancelled_(std::move(cancelled)), done_(std::move(done)) {
    key = request_->key();
    tokens = request_->tokens();
  }

  // Before Fail or Finish.
  const ComputeRequest& request() const { return *request_; }

  bool cancelled() const override { return cancelled_->load(std::memory_order_relaxed); }
  void Fail(const absl::Status& status) override { End({status, absl::ZeroDuration()}); }
  void Finish(Answer answer, absl::Duration queued) { End({std::move(answer), queued}); }

 private:
  void End(JobOutcome outcome) {
    request_.reset();
    done_(std::move(outcome));
  }

  std::optional<ComputeRequest> request_;
  const std::shared_ptr<const std::atomic<bool>> cancelled_;
  const std::function<void(JobOutcome)> done_;
};

}  // namespace attendant::server
