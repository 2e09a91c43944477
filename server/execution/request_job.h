// One request of this service on its way through the queue.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "server/admission/budget.h"
#include "server/batching/job.h"
#include "server/execution/response.h"
#include "server/request/compute_request.h"
#include "server/request/registration_request.h"

namespace attendant::server {

// What a request holds of the admission's budgets.
struct Held {
  Budget::Hold slot;    // of a stream's item; that of a unary call stays with its reactor
  Budget::Hold memory;  // message, answer and scratch
};

// The end of a job: a response, or the error instead of one; and what the answer goes on holding.
template <typename Response>
struct JobEnd {
  absl::StatusOr<Response> response;
  absl::Duration queued = {};  // of computed jobs
  Held held = {};
};

template <typename Request, typename Response>
class RequestJob final : public Job {
 public:
  using End = JobEnd<Response>;

  // `done` is called exactly once, by Fail or Finish, on their thread. The request and what it
  // holds (payloads, registered keys) are released first, so that a caller who has the response
  // finds their room free. `cancelled` is set once the caller is gone.
  RequestJob(Request request, std::shared_ptr<const std::atomic<bool>> cancelled,
             std::function<void(End)> done)
      : request_(std::move(request)), cancelled_(std::move(cancelled)), done_(std::move(done)) {
    key = request_->key();
    tokens = request_->tokens();
  }

  // Set before the job is queued.
  Held held;

  // Before Fail or Finish.
  const Request& request() const { return *request_; }

  bool cancelled() const override { return cancelled_->load(std::memory_order_relaxed); }
  void Fail(const absl::Status& status) override { EndWith({status}); }
  void Finish(Response response, absl::Duration queued) { EndWith({std::move(response), queued}); }

 private:
  void EndWith(End end) {
    request_.reset();
    end.held = std::move(held);
    done_(std::move(end));
  }

  std::optional<Request> request_;
  const std::shared_ptr<const std::atomic<bool>> cancelled_;
  const std::function<void(End)> done_;
};

// Every job of the service's queue is one of these: the first for JobKind::kCompute, the second for
// JobKind::kRegistration.
using ComputeJob = RequestJob<ComputeRequest, Response>;
using RegistrationJob = RequestJob<RegistrationRequest, RegistrationResponse>;

// CANCELLED or DEADLINE_EXCEEDED if nobody waits for the job any more.
absl::Status CheckAwaited(const Job& job, absl::Time now);

}  // namespace attendant::server
