#include "server/rest/body_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/account/trace_context.h"
#include "server/base/fault.h"
#include "server/rest/rest_answer.h"

namespace attendant::server {

BodyCall::BodyCall(BodyCallArgs entry)
    : entry_(std::move(entry)),
      context_(entry_.context),
      started_(context_.clock.Now()),
      body_(entry_.body_bytes.value_or(context_.limits.max_request_bytes)) {
  until_reported_->slot = std::move(entry_.slot);
}

void BodyCall::OnBody(std::string_view bytes) {
  if (!received_.ok()) return;
  const absl::Status status = Guarded([&] { return Receive(bytes); });
  if (status.ok()) return;
  received_ = status;
  body_.Clear();
  memory_.Release();
}

absl::Status BodyCall::Receive(std::string_view bytes) {
  const auto more = static_cast<int64_t>(bytes.size());
  const int64_t most = context_.limits.max_request_bytes;
  if (body_.size() + more > most) {
    return absl::OutOfRangeError(absl::StrCat("the body: expected at most ", most,
                                              " bytes (--max-request-tokens); got more"));
  }
  RETURN_IF_ERROR(Charge(body_.CapacityFor(more), HeldFor::kReceiving));
  body_.Append(bytes);
  return absl::OkStatus();
}

absl::Status BodyCall::Charge(int64_t bytes, HeldFor purpose) {
  if (!memory_.empty() && memory_.amount() == bytes && purpose == HeldFor::kReceiving) {
    return absl::OkStatus();
  }
  return context_.admission.Charge({entry_.peer, bytes, purpose}, memory_);
}

std::optional<HttpAnswer> BodyCall::OnRequest() {
  requested_ = true;
  if (!received_.ok()) {
    Fail(received_);
  } else {
    RunOnWorker([this] { return OnMessage(body_.Take()); });
  }
  return std::nullopt;
}

void BodyCall::RunOnWorker(std::function<absl::Status()> work) {
  const absl::Status status = Guarded([&] {
    context_.workers.Run([self = shared_from_this(), work = std::move(work)]() mutable {
      const absl::Status end = Guarded([&] { return work(); });
      work = nullptr;  // first, so that a client that has the answer finds its room free
      if (!end.ok()) self->Fail(end);
    });
  });
  if (!status.ok()) Fail(status);
}

HttpAnswer BodyCall::AnswerOf(const absl::Status& error) const {
  return ErrorAnswer(error, RetryAfter(context_));
}

void BodyCall::Finish(HttpAnswer answer, Budget::Reservation memory,
                      absl::Duration queued) noexcept {
  if (ended_.exchange(true)) return;
  until_reported_->memory = std::move(memory);
  entry_.account.SetQueued(queued);
  context_.admission.ReportAnswered(context_.clock.Now() - started_);
  Report(absl::OkStatus(), std::move(answer));
}

void BodyCall::Fail(const absl::Status& status) noexcept {
  if (ended_.exchange(true)) return;
  HttpAnswer answer = {500};  // if there is no memory for more
  Guarded([&] { answer = AnswerOf(status); }).IgnoreError();
  memory_.Release();
  Report(status, std::move(answer));
}

void BodyCall::Report(const absl::Status& status, HttpAnswer answer) noexcept {
  Guarded([&] {
    if (!entry_.trace.empty()) answer.headers.emplace_back(kTraceParent, entry_.trace);
  }).IgnoreError();
  entry_.reply->Send(std::move(answer));
  entry_.account.Report(status, context_);
  until_reported_.reset();
}

void BodyCall::OnCancelled() {
  cancelled_->store(true, std::memory_order_relaxed);
  context_.queue.FailExpired();
}

void BodyCall::OnEnd(HttpCall::End end) {
  cancelled_->store(true, std::memory_order_relaxed);
  if (!requested_) {
    Fail(end == HttpCall::End::kTooLate
             ? absl::DeadlineExceededError("the request's body did not arrive in time")
             : absl::CancelledError("the client has disconnected"));
    body_.Clear();
  } else if (end == HttpCall::End::kTooLate) {
    context_.metrics.CountUnsentAnswer();
  }
  until_done_.reset();
}

}  // namespace attendant::server
