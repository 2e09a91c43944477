// ComputeJob, a request of this service in the queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/budget.h"
#include "server/batching/job.h"
#include "server/execution/response.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"

namespace attendant::server {

// A request's reservations of the admission's budgets.
struct Held {
  // Of a stream's item, or of a call over HTTP until it is over; a unary call over gRPC holds its
  // own.
  Budget::Reservation slot;
  Budget::Reservation memory;  // of the message, the response and the scratch
};

// Assembles the response of a request from its slices, which may be computed on different threads
// at the same time. BeginSlice begins a slice and EndSlice ends it; in between, the request is not
// released, whatever happens to other slices. The job ends once: when all its sequences are
// computed, or when it has failed and no slice is being computed.
class ComputeJob final : public Job {
 public:
  // A response or an error, and what the job still holds.
  struct End {
    absl::StatusOr<Response> response;
    absl::Duration queued = {};  // only for computed jobs
    Held held = {};
  };

  // `done` is called exactly once, when the job ends, on the thread that ends it. The request and
  // its resources (payloads, registered keys) are released first, so that a client that has the
  // response finds their memory free. `job_cancelled` is set when the client disconnects.
  ComputeJob(ComputeRequest request, std::shared_ptr<const std::atomic<bool>> job_cancelled,
             std::function<void(End)> done);

  // Valid after the job has ended, unlike the request.
  const std::shared_ptr<const ServedModel> model;

  // Set before the job is queued.
  Held held;

  // Valid until the job has ended.
  const ComputeRequest& request() const { return *request_; }

  // Returns false if the job has failed; then there is nothing to compute, and no slice to end.
  bool BeginSlice();

  // Calls `change` with the response, which all slices fill, excluding other slices meanwhile.
  void ChangeResponse(absl::FunctionRef<void(Response&)> change) {
    absl::MutexLock lock(&mutex_);
    change(response_);
  }

  // Ends a slice of `sequences` that waited for `queued`. The job fails if `status` is not OK.
  void EndSlice(int64_t sequences, absl::Duration queued, const absl::Status& status);

  void Fail(const absl::Status& status) override;

 private:
  void Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true once, when the job must end.
  bool Over() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndNow() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  std::optional<ComputeRequest> request_;
  std::function<void(End)> done_;

  absl::Mutex mutex_;
  Response response_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first error
  absl::Duration queued_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  int64_t left_ ABSL_GUARDED_BY(mutex_);     // sequences not yet computed
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // slices
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// The terms under which a call submits its request.
struct JobTerms {
  std::string peer;  // see Job
  absl::Time deadline = absl::InfiniteFuture();
  bool patient = false;                                     // see Job
  std::shared_ptr<const std::atomic<bool>> cancelled = {};  // true once the client disconnects
  Held held = {};
};

// Submits the request to the queue, without the sequences found in the cache. If all are found,
// calls `done` at once on this thread, otherwise as ComputeJob does. Returns the errors of
// BatchQueue::Submit, and RESOURCE_EXHAUSTED without memory for a cached response; `done` is not
// called then.
absl::Status SubmitJob(const ServiceContext& context, ComputeRequest request, JobTerms terms,
                       std::function<void(ComputeJob::End)> done);

// Sets what the scheduler needs except the client: the slices in which the job may be computed, and
// their predicted times.
void PlanJob(const ServiceContext& context, ComputeJob& job);

}  // namespace attendant::server
