// InferCall, one inference request over HTTP.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admission/budget.h"
#include "server/execution/compute_job.h"
#include "server/http/http_call.h"
#include "server/inference/infer.h"
#include "server/request/service_context.h"
#include "server/rest/body_buffer.h"
#include "server/rpc/call/request_end.h"

namespace attendant::server {

struct InferEntry {
  const ServiceContext& context;  // which outlives the call

  std::string model;
  std::string version;  // empty: the one that is served
  std::string peer;
  std::string trace;                       // the traceparent; empty: none
  std::optional<int64_t> body_bytes = {};  // none: not declared
  std::optional<int64_t> json_bytes = {};  // none: the whole body
  Budget::Hold slot = {};
  RequestAccount account;
  std::shared_ptr<HttpReply> reply;
};

// Slot -> body -> message -> job -> answer, as a ModelInfer over gRPC (server/rpc/job_call.cc).
//
// Three parties come in, one after the other: the thread of the HTTP port until the body has come,
// a worker that reads it, and the thread that ends the job, which has a worker make the answer. At
// any time the HTTP port may tell that the caller has gone, or that the connection has ended. The
// call is reported once, by End; it holds its slot and its memory until it is reported and its
// connection is done with it.
class InferCall final : public HttpCall, public std::enable_shared_from_this<InferCall> {
 public:
  explicit InferCall(InferEntry entry);

  void OnBody(std::string_view bytes) override;
  std::optional<HttpAnswer> OnRequest() override;
  void OnGone() override;
  void OnEnd(HttpCall::End end) override;

 private:
  absl::Status Receive(std::string_view bytes);
  absl::Status Charge(int64_t bytes, HeldFor purpose);
  void Prepare();
  absl::StatusOr<PreparedInfer> ReadMessage();
  absl::Status Submit(PreparedInfer prepared);
  void OnComputed(ComputeJob::End result);
  void Answer();
  // `work` on a worker, of which `this` ends the call if it throws.
  void RunOnWorker(void (InferCall::*work)());
  void Finish(const absl::Status& status, HttpAnswer answer) noexcept;
  void Fail(const absl::Status& status) noexcept;
  void ReleaseIfOver();

  InferEntry entry_;
  const ServiceContext& context_;
  const absl::Time started_;
  const std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);

  // One thread at a time, in the order above.
  BodyBuffer body_;
  absl::Status received_;  // an error: the rest of the body is dropped
  bool requested_ = false;
  Budget::Hold receiving_;            // until the job has it
  std::vector<bool> binary_outputs_;  // of the answer
  bool binary_by_default_ = false;
  std::function<InferAnswer(Response)> to_answer_;
  std::optional<ComputeJob::End> computed_;
  absl::Duration queued_ = {};

  absl::Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool reported_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // with the connection
  Budget::Hold slot_ ABSL_GUARDED_BY(mutex_);
  Budget::Hold answer_memory_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
