// ComputeJob: a request of this service on its way through the queue.
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

// The shares of the admission's budgets that a request holds.
struct Held {
  Budget::Hold slot;    // of a stream's item; that of a unary call stays with its reactor
  Budget::Hold memory;  // message, answer and scratch
};

// Assembles the response of a request from its slices, which may be computed at the same time on
// different threads. Each slice is begun by BeginSlice and ended by EndSlice; between these the
// request is not released, whatever happens to the other slices. The job ends once: when all its
// sequences are computed, or when it has failed and none of its slices is being computed.
class ComputeJob final : public Job {
 public:
  // A response, or the error instead of one; and what it goes on holding.
  struct End {
    absl::StatusOr<Response> response;
    absl::Duration queued = {};  // of computed jobs
    Held held = {};
  };

  // `done` is called exactly once, when the job ends, on the thread that ends it. The request and
  // what it holds (payloads, registered keys) are released first, so that a client that has the
  // response finds their room free. `gone` is set once the client is gone.
  ComputeJob(ComputeRequest request, std::shared_ptr<const std::atomic<bool>> gone,
             std::function<void(End)> done);

  // Also after the job has ended, unlike the request.
  const std::shared_ptr<const ServedModel> model;

  // Set before the job is queued.
  Held held;

  // Until the job has ended.
  const ComputeRequest& request() const { return *request_; }

  // Returns false if the job has failed: there is nothing to compute, and no slice to end.
  bool BeginSlice();

  // Calls `change` with the response, which all slices fill in, and keeps other slices out
  // meanwhile.
  void ChangeResponse(absl::FunctionRef<void(Response&)> change) {
    absl::MutexLock lock(&mutex_);
    change(response_);
  }

  // Ends a slice of `sequences`, which has waited for `queued`. If `status` is not OK the job
  // fails.
  void EndSlice(int64_t sequences, absl::Duration queued, const absl::Status& status);

  void Fail(const absl::Status& status) override;

 private:
  void Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true once, when the job is to be ended.
  bool Over() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndNow() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  std::optional<ComputeRequest> request_;
  std::function<void(End)> done_;

  absl::Mutex mutex_;
  Response response_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first error
  absl::Duration queued_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  int64_t left_ ABSL_GUARDED_BY(mutex_);     // sequences that no slice has computed
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // slices
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// The terms on which a call has its request computed.
struct JobTerms {
  std::string peer;  // see Job
  absl::Time deadline = absl::InfiniteFuture();
  bool patient = false;                                // see Job
  std::shared_ptr<const std::atomic<bool>> gone = {};  // true once the client is gone
  Held held = {};
};

// Submits the request to the queue, without the sequences whose vectors the cache has. If it has
// them all, calls `done` at once, on this thread; else as ComputeJob does. Returns the errors of
// BatchQueue::Submit, and RESOURCE_EXHAUSTED if there is no memory for a response from the cache;
// then `done` is not called.
absl::Status SubmitJob(const ServiceContext& context, ComputeRequest request, JobTerms terms,
                       std::function<void(ComputeJob::End)> done);

// Sets what the scheduler needs beside the job's caller: the slices that it may be computed in,
// with their predicted times.
void PlanJob(const ServiceContext& context, ComputeJob& job);

}  // namespace attendant::server
