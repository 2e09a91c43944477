#include "server/rest/infer_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/fault.h"
#include "server/rest/infer_body.h"
#include "server/rest/infer_content.h"
#include "server/rest/rest_answer.h"
#include "server/rpc/call/trace_context.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr char kJsonLength[] = "Inference-Header-Content-Length";

int64_t BytesOf(const MessageSlices& slices) {
  int64_t bytes = 0;
  for (const grpc::Slice& slice : slices) bytes += static_cast<int64_t>(slice.size());
  return bytes;
}

// Outputs in JSON are FP32: the other float types have no form there.
absl::Status CheckOutputForms(const inference::ModelInferRequest& message,
                              const std::vector<bool>& binary, bool binary_by_default) {
  const auto found = message.parameters().find("output_datatype");
  if (found == message.parameters().end()) return absl::OkStatus();
  const std::string& type = found->second.string_param();
  if (type != "FP16" && type != "BF16") return absl::OkStatus();
  const bool all = binary.empty()
                       ? binary_by_default
                       : std::all_of(binary.begin(), binary.end(), [](bool one) { return one; });
  if (all) return absl::OkStatus();
  return InvalidField("parameters.output_datatype",
                      "FP32 for outputs in JSON (with binary_data any)", type);
}

}  // namespace

InferCall::InferCall(InferEntry entry)
    : entry_(std::move(entry)),
      context_(entry_.context),
      started_(context_.clock.Now()),
      body_(entry_.body_bytes.value_or(context_.limits.max_request_bytes)),
      slot_(std::move(entry_.slot)) {}

void InferCall::OnBody(std::string_view bytes) {
  if (!received_.ok()) return;
  const absl::Status status = Guarded([&] { return Receive(bytes); });
  if (status.ok()) return;
  received_ = status;
  body_.Clear();
  receiving_.Release();
}

absl::Status InferCall::Receive(std::string_view bytes) {
  const auto more = static_cast<int64_t>(bytes.size());
  const int64_t most = context_.limits.max_request_bytes;
  if (body_.size() + more > most) {
    return absl::OutOfRangeError(
        absl::StrCat("the body: expected at most ", most, " bytes; got more"));
  }
  if (absl::Status status = Charge(body_.CapacityFor(more), HeldFor::kReceiving); !status.ok()) {
    return status;
  }
  body_.Append(bytes);
  return absl::OkStatus();
}

absl::Status InferCall::Charge(int64_t bytes, HeldFor purpose) {
  if (!receiving_.empty() && receiving_.amount() == bytes && purpose == HeldFor::kReceiving) {
    return absl::OkStatus();
  }
  return context_.admission.Charge({entry_.peer, bytes, purpose}, receiving_);
}

std::optional<HttpAnswer> InferCall::OnRequest() {
  requested_ = true;
  if (!received_.ok()) {
    Fail(received_);
  } else {
    RunOnWorker(&InferCall::Prepare);
  }
  return std::nullopt;
}

void InferCall::RunOnWorker(void (InferCall::*work)()) {
  const absl::Status status = Guarded([&] {
    context_.workers.Run([self = shared_from_this(), work] {
      const absl::Status fault = Guarded([&] { ((*self).*work)(); });
      if (!fault.ok()) self->Fail(fault);
    });
  });
  if (!status.ok()) Fail(status);
}

void InferCall::Prepare() {
  absl::StatusOr<PreparedInfer> prepared = ReadMessage();
  const absl::Status status = prepared.ok() ? Submit(*std::move(prepared)) : prepared.status();
  if (!status.ok()) Fail(status);
}

absl::StatusOr<PreparedInfer> InferCall::ReadMessage() {
  auto body = std::make_shared<const MessageSlices>(body_.Take());
  const int64_t bytes = BytesOf(*body);
  const int64_t json_bytes = entry_.json_bytes.value_or(bytes);
  if (json_bytes > bytes) {
    return InvalidField(kJsonLength, absl::StrCat("at most the ", bytes, " bytes of the body"),
                        absl::StrCat(json_bytes));
  }
  const int64_t received = receiving_.amount();
  absl::StatusOr<InferBody> read = ReadInferBody(body, json_bytes, [&](int64_t packed) {
    return Charge(received + packed, HeldFor::kReceiving);
  });
  if (!read.ok()) return read.status();
  const absl::Status status =
      CheckOutputForms(read->message, read->binary_outputs, read->binary_by_default);
  if (!status.ok()) return status;
  // Without binary tensors the body is not needed any more.
  const int64_t kept = json_bytes < bytes ? bytes : 0;
  body.reset();
  read->message.set_model_name(entry_.model);
  read->message.set_model_version(entry_.version);
  binary_outputs_ = std::move(read->binary_outputs);
  binary_by_default_ = read->binary_by_default;
  return PrepareInferMessage(read->message, read->data, kept + read->packed_bytes, context_);
}

absl::Status InferCall::Submit(PreparedInfer prepared) {
  absl::Status status = Charge(prepared.compute.bytes, HeldFor::kRequest);
  if (!status.ok()) return status;
  to_answer_ = std::move(prepared.to_answer);
  auto job = std::make_shared<ComputeJob>(
      std::move(prepared.compute.request), gone_,
      [self = shared_from_this()](ComputeJob::End result) { self->OnComputed(std::move(result)); });
  job->held.memory = std::move(receiving_);
  job->deadline = prepared.compute.timeout == absl::InfiniteDuration()
                      ? absl::InfiniteFuture()
                      : started_ + prepared.compute.timeout;
  job->peer = entry_.peer;
  PlanJob(context_, *job);
  entry_.account.Describe(job->request());
  return context_.queue.Submit(std::move(job));
}

void InferCall::OnComputed(ComputeJob::End result) {
  if (!result.response.ok()) {
    result.held.memory.Release();
    return Fail(result.response.status());
  }
  queued_ = result.queued;
  computed_ = std::move(result);
  RunOnWorker(&InferCall::Answer);
}

void InferCall::Answer() {
  InferAnswer made = to_answer_(*std::move(computed_->response));
  int64_t bytes = 0;
  for (const grpc::Slice& tensor : made.raw) bytes += static_cast<int64_t>(tensor.size());
  if (binary_outputs_.empty()) binary_outputs_.assign(made.raw.size(), binary_by_default_);
  const auto content = std::make_shared<InferContent>(std::move(made), binary_outputs_);
  HttpAnswer answer;
  answer.content_type = content->has_binary() ? "application/octet-stream" : "application/json";
  if (content->has_binary()) {
    answer.headers.emplace_back(kJsonLength, absl::StrCat(content->json_bytes()));
  }
  answer.content = content;
  computed_->held.memory.Change(bytes, HeldFor::kAnswer);
  {
    absl::MutexLock lock(&mutex_);
    answer_memory_ = std::move(computed_->held.memory);
  }
  Finish(absl::OkStatus(), std::move(answer));
}

void InferCall::Fail(const absl::Status& status) noexcept {
  HttpAnswer answer = {500};  // if there is no memory for more
  Guarded([&] { answer = ErrorAnswer(status, RetryAfter(context_)); }).IgnoreError();
  receiving_.Release();
  computed_.reset();
  Finish(status, std::move(answer));
}

void InferCall::Finish(const absl::Status& status, HttpAnswer answer) noexcept {
  {
    absl::MutexLock lock(&mutex_);
    if (finished_) return;
    finished_ = true;
  }
  if (status.ok()) {
    entry_.account.SetQueued(queued_);
    context_.admission.ReportAnswered(context_.clock.Now() - started_);
  }
  Guarded([&] {
    if (!entry_.trace.empty()) answer.headers.emplace_back(kTraceParent, entry_.trace);
  }).IgnoreError();
  entry_.reply->Send(std::move(answer));
  entry_.account.Report(status, context_);
  {
    absl::MutexLock lock(&mutex_);
    reported_ = true;
  }
  ReleaseIfOver();
}

void InferCall::OnGone() {
  gone_->store(true, std::memory_order_relaxed);
  context_.queue.FailExpired();
}

void InferCall::OnEnd(HttpCall::End end) {
  gone_->store(true, std::memory_order_relaxed);
  if (!requested_) {
    Fail(end == HttpCall::End::kTooLate
             ? absl::DeadlineExceededError("the request's body did not arrive in time")
             : absl::CancelledError("the caller is gone"));
    body_.Clear();
  } else if (end == HttpCall::End::kTooLate) {
    context_.metrics.CountUnsentAnswer();
  }
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
  }
  ReleaseIfOver();
}

// Without the mutex, as what is given back runs other calls.
void InferCall::ReleaseIfOver() {
  Budget::Hold slot, memory;
  absl::MutexLock lock(&mutex_);
  if (!reported_ || !done_) return;
  slot = std::move(slot_);
  memory = std::move(answer_memory_);
}

}  // namespace attendant::server
