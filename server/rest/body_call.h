// BodyCall, the base class of all HTTP calls with a body.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/account/request_recorder.h"
#include "server/admission/budget.h"
#include "server/execution/compute_job.h"
#include "server/http/http_call.h"
#include "server/request/service_context.h"
#include "server/rest/body_buffer.h"

namespace attendant::server {

struct BodyCallArgs {
  const ServiceContext& context;  // outlives the call

  std::string peer;
  std::string trace;                       // the traceparent, or empty
  std::optional<int64_t> body_bytes = {};  // not set if undeclared
  Budget::Reservation slot = {};
  RequestRecorder account;
  std::shared_ptr<HttpReply> reply;
};

// Slot -> body -> work -> response.
//
// Several threads handle a call in turn: the HTTP port's until the body has arrived, a worker that
// reads it, and threads that complete jobs, which pass the call to a worker again. Meanwhile the
// HTTP port may report that the client disconnected or the connection ended. Finish or Fail reports
// the call once; it holds its slot and memory until it is reported and its connection is done with
// it.
class BodyCall : public HttpCall, public std::enable_shared_from_this<BodyCall> {
 public:
  void OnBody(std::string_view bytes) final;
  std::optional<HttpAnswer> OnRequest() final;
  void OnCancelled() final;
  void OnEnd(HttpCall::End end) final;

 protected:
  explicit BodyCall(BodyCallArgs entry);

  // Called on a worker with the whole body, held in `memory_`. An error fails the call.
  virtual absl::Status OnMessage(MessageSlices body) = 0;
  virtual HttpAnswer AnswerOf(const absl::Status& error) const;

  // Makes `memory_` hold this many bytes for this purpose.
  absl::Status Charge(int64_t bytes, HeldFor purpose);
  // Runs `work` on a worker. An error or exception fails the call.
  void RunOnWorker(std::function<absl::Status()> work);
  // End the call unless it has ended. `memory` is held until the response is sent. `queued` is the
  // time in the queue.
  void Finish(HttpAnswer answer, Budget::Reservation memory, absl::Duration queued) noexcept;
  void Fail(const absl::Status& status) noexcept;

  BodyCallArgs entry_;
  const ServiceContext& context_;
  const absl::Time started_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  Budget::Reservation memory_;  // used by one thread at a time, in the order above

 private:
  absl::Status Receive(std::string_view bytes);
  void Report(const absl::Status& status, HttpAnswer answer) noexcept;

  // Used like `memory_`.
  BodyBuffer body_;
  absl::Status received_;  // on error, the rest of the body is dropped
  bool requested_ = false;

  std::atomic<bool> ended_ = false;
  // The slot, held until the call is reported, and the memory of the response, held until the
  // connection releases it.
  std::shared_ptr<Held> until_reported_ = std::make_shared<Held>();
  std::shared_ptr<Held> until_done_ = until_reported_;
};

}  // namespace attendant::server
