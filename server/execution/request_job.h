// One request of this service on its way through the queue.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/budget.h"
#include "server/batching/job.h"
#include "server/execution/response.h"
#include "server/request/compute_request.h"
#include "server/request/registration_request.h"
#include "server/request/service_context.h"

namespace attendant::server {

// The shares of the admission's budgets that a request holds.
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

// A job is computed in one or several parts, which may overlap on different threads. Each part is
// begun by Start and ended by EndPart; between these the request is not released, whatever happens
// to the other parts. The job ends once: when all its sequences are computed, or when it has failed
// and none of its parts is being computed.
template <typename Request, typename Response>
class RequestJob : public JobInfo {
 public:
  using End = JobEnd<Response>;

  // `done` is called exactly once, when the job ends, on the thread that ends it. The request and
  // what it holds (payloads, registered keys) are released first, so that a caller who has the
  // response finds their room free. `gone` is set once the caller is gone.
  RequestJob(Request request, std::shared_ptr<const std::atomic<bool>> gone,
             std::function<void(End)> done)
      : model(request.span.model), request_(std::move(request)), done_(std::move(done)) {
    key = request_->key();
    tokens = request_->tokens();
    cancelled = std::move(gone);
    left_ = request_->sequences();
  }

  // Also after the job has ended, unlike the request.
  const std::shared_ptr<const ServedModel> model;

  // Set before the job is queued.
  Held held;

  // Until the job has ended.
  const Request& request() const { return *request_; }

  // Returns false if the job has failed: there is nothing to compute, and no part to end.
  bool Start() {
    absl::MutexLock lock(&mutex_);
    if (ended_ || !status_.ok()) return false;
    ++running_;
    return true;
  }

  // Calls `change` with the response, which all parts fill in, and keeps other parts out meanwhile.
  void ChangeResponse(absl::FunctionRef<void(Response&)> change) {
    absl::MutexLock lock(&mutex_);
    change(response_);
  }

  // Ends a part of `sequences`, which has waited for `queued`. If `status` is not OK the job fails.
  void EndPart(int64_t sequences, absl::Duration queued, const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      --running_;
      left_ -= sequences;
      queued_ = std::min(queued_, queued);
      Note(status);
      if (!Over()) return;
    }
    EndNow();
  }

  // Fails the job, if it has not ended. Any thread.
  void Fail(const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      Note(status);
      if (!Over()) return;
    }
    EndNow();
  }

 private:
  void Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    status_.Update(status);
    if (!status_.ok()) failed = true;
  }

  // Returns true once, when the job is to be ended.
  bool Over() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_ || running_ > 0 || (left_ > 0 && status_.ok())) return false;
    ended_ = true;
    return true;
  }

  // Nobody else uses the job any more.
  void EndNow() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    request_.reset();
    End end = status_.ok() ? End{std::move(response_), queued_} : End{status_};
    end.held = std::move(held);
    std::exchange(done_, nullptr)(std::move(end));
  }

  std::optional<Request> request_;
  std::function<void(End)> done_;

  absl::Mutex mutex_;
  Response response_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first error
  absl::Duration queued_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  int64_t left_ ABSL_GUARDED_BY(mutex_) = 0;  // sequences that no part has computed
  int running_ ABSL_GUARDED_BY(mutex_) = 0;   // parts
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

using ComputeJob = RequestJob<ComputeRequest, Response>;
using RegistrationJob = RequestJob<RegistrationRequest, RegistrationResponse>;

// A job of either kind, as the service's queue holds it. Copies share the job.
class ServiceJob {
 public:
  explicit ServiceJob(std::shared_ptr<ComputeJob> job) : job_(std::move(job)) {}
  explicit ServiceJob(std::shared_ptr<RegistrationJob> job) : job_(std::move(job)) {}

  JobInfo& info() const {
    return std::visit([](const auto& job) -> JobInfo& { return *job; }, job_);
  }
  const std::shared_ptr<const ServedModel>& model() const {
    return std::visit(
        [](const auto& job) -> const std::shared_ptr<const ServedModel>& { return job->model; },
        job_);
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

// Sets what the scheduler needs beside the job's caller: the slices that it may be computed in,
// with their predicted times.
void PlanJob(const ServiceContext& context, ComputeJob& job);
void PlanJob(const ServiceContext& context, RegistrationJob& job);

}  // namespace attendant::server
