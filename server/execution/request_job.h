// One request of this service on its way through the queue.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "server/admission/budget.h"
#include "server/batching/job.h"
#include "server/execution/response.h"
#include "server/request/compute_request.h"
#include "server/request/registration_request.h"
#include "server/request/service_context.h"

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
class RequestJob : public JobInfo {
 public:
  using End = JobEnd<Response>;

  // `done` is called exactly once, by Fail or Finish, on their thread. The request and what it
  // holds (payloads, registered keys) are released first, so that a caller who has the response
  // finds their room free. `gone` is set once the caller is gone.
  RequestJob(Request request, std::shared_ptr<const std::atomic<bool>> gone,
             std::function<void(End)> done)
      : request_(std::move(request)), done_(std::move(done)) {
    key = request_->key();
    tokens = request_->tokens();
    cancelled = std::move(gone);
  }

  // Set before the job is queued.
  Held held;

  // Before Fail or Finish.
  const Request& request() const { return *request_; }

  void Fail(const absl::Status& status) { EndWith({status}); }
  void Finish(Response response, absl::Duration queued) { EndWith({std::move(response), queued}); }

 private:
  void EndWith(End end) {
    request_.reset();
    end.held = std::move(held);
    std::exchange(done_, nullptr)(std::move(end));
  }

  std::optional<Request> request_;
  std::function<void(End)> done_;
};

using ComputeJob = RequestJob<ComputeRequest, Response>;
using RegistrationJob = RequestJob<RegistrationRequest, RegistrationResponse>;

// What the service's queue holds: a job of either kind. Copies share it.
class ServiceJob {
 public:
  explicit ServiceJob(std::shared_ptr<ComputeJob> job) : job_(std::move(job)) {}
  explicit ServiceJob(std::shared_ptr<RegistrationJob> job) : job_(std::move(job)) {}

  JobInfo& info() const {
    return std::visit([](const auto& job) -> JobInfo& { return *job; }, job_);
  }
  void Fail(const absl::Status& status) const {
    std::visit([&](const auto& job) { job->Fail(status); }, job_);
  }

  // The job, which must be of this kind.
  const std::shared_ptr<ComputeJob>& compute() const {
    return std::get<std::shared_ptr<ComputeJob>>(job_);
  }
  const std::shared_ptr<RegistrationJob>& registration() const {
    return std::get<std::shared_ptr<RegistrationJob>>(job_);
  }

 private:
  std::variant<std::shared_ptr<ComputeJob>, std::shared_ptr<RegistrationJob>> job_;
};

// Sets what the scheduler needs beside the job's caller: its predicted time, and the deadline that
// calls without one get.
void PlanJob(const ServiceContext& context, ComputeJob& job);
void PlanJob(const ServiceContext& context, RegistrationJob& job);

}  // namespace attendant::server
