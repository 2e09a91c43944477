// One request of this service on its way through the queue.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/batching/job.h"
#include "server/services/answer.h"
#include "server/services/compute_request.h"

namespace attendant::server {

// How a job ended.
struct JobOutcome {
  absl::StatusOr<Answer> answer;
  absl::Duration queued;  // of computed jobs
};

// Every job of the service's queue is one of these.
class EncodeJob final : public Job {
 public:
  // `done` is called exactly once, by Fail or Finish, on their thread. `cancelled` is set once the
  // caller is gone.
  EncodeJob(ComputeRequest request, std::shared_ptr<const std::atomic<bool>> cancelled,
            std::function<void(JobOutcome)> done)
      : request_(std::move(request)), cancelled_(std::move(cancelled)), done_(std::move(done)) {
    key = request_.key();
    tokens = request_.tokens();
  }

  const ComputeRequest& request() const { return request_; }

  bool cancelled() const override { return cancelled_->load(std::memory_order_relaxed); }
  void Fail(const absl::Status& status) override { done_({status, absl::ZeroDuration()}); }
  void Finish(Answer answer, absl::Duration queued) { done_({std::move(answer), queued}); }

 private:
  const ComputeRequest request_;
  const std::shared_ptr<const std::atomic<bool>> cancelled_;
  const std::function<void(JobOutcome)> done_;
};

}  // namespace attendant::server
