#include "server/rpc/unary_reactor.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {

grpc::ServerGenericBidiReactor* UnaryReactor::Start(const ServiceContext& context,
                                                    const UnaryMethod& method,
                                                    grpc::GenericCallbackServerContext& call,
                                                    std::unique_ptr<Admission::Slot> slot) {
  std::shared_ptr<UnaryReactor> reactor(new UnaryReactor(context, method, call, std::move(slot)));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
  }
  reactor->AskForPermit();
  return reactor.get();
}

UnaryReactor::UnaryReactor(const ServiceContext& context, const UnaryMethod& method,
                           grpc::GenericCallbackServerContext& call,
                           std::unique_ptr<Admission::Slot> slot)
    : context_(context),
      method_(method),
      call_(call),
      slot_(std::move(slot)),
      account_(method.name) {}

void UnaryReactor::AskForPermit() {
  // The size of the body is not known before it arrives.
  const int64_t bytes = context_.limits.max_request_bytes;
  std::unique_ptr<Admission::PendingPermit> pending_permit = context_.admission.RequestPermit(
      bytes, [weak = weak_from_this()](std::unique_ptr<Admission::Permit> permit) {
        if (const auto self = weak.lock()) self->OnPermit(std::move(permit));
      });
  if (pending_permit == nullptr) {
    return End({absl::ResourceExhaustedError(absl::StrCat(
        "the server's receive memory is smaller than a request of ", bytes, " bytes"))});
  }
  absl::MutexLock lock(&mutex_);
  pending_permit_ = std::move(pending_permit);
}

void UnaryReactor::OnPermit(std::unique_ptr<Admission::Permit> permit) {
  absl::MutexLock lock(&mutex_);
  if (phase_ != Phase::kAwaitingPermit) return;
  phase_ = Phase::kReceiving;
  permit_ = std::move(permit);
  receive_timeout_.Set(
      std::chrono::system_clock::now() + absl::ToChronoNanoseconds(context_.limits.receive_timeout),
      [weak = weak_from_this()](bool expired) {
        if (!expired) return;
        if (const auto self = weak.lock()) self->OnReceiveTimeout();
      });
  StartRead(&message_);
}

void UnaryReactor::OnReceiveTimeout() {
  End({.status = absl::DeadlineExceededError(
           absl::StrCat("the request's body did not arrive within ",
                        absl::FormatDuration(context_.limits.receive_timeout))),
       .only_in = Phase::kReceiving});
}

void UnaryReactor::OnReadDone(bool ok) {
  if (!ok) return End({.status = ReadError(), .only_in = Phase::kReceiving});
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kReceiving) return;
    phase_ = Phase::kComputing;
    receive_timeout_.Cancel();
  }
  (this->*method_.submit)();
}

absl::Status UnaryReactor::ReadError() const {
  if (context_.admission.closed()) return DrainingError();
  if (call_.IsCancelled()) return LostCallerError(call_, context_);
  return absl::InvalidArgumentError("the call ended without a request message");
}

template <typename JobOfMethod, auto Prepare, auto Respond>
void UnaryReactor::Submit() {
  auto prepared = Prepare(message_, context_);
  message_.Clear();  // what is needed of it, the request holds
  if (!prepared.ok()) return End({prepared.status()});
  auto end = [self = shared_from_this()](typename JobOfMethod::End result) {
    if (!result.response.ok()) return self->End({result.response.status()});
    self->End({.status = absl::OkStatus(),
               .response = Respond(*std::move(result.response)),
               .queued = result.queued});
  };
  auto job = std::make_unique<JobOfMethod>(std::move(prepared->request), cancelled_, end);
  job->bytes = prepared->bytes;
  job->deadline = DeadlineOf(call_, context_.clock);
  std::unique_ptr<Admission::Permit> permit;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kFinished) return;
    account_.Describe(job->request());
    permit = std::move(permit_);
  }
  std::unique_ptr<Job> queued = std::move(job);
  const absl::Status status = context_.queue.Submit(queued);
  if (status.ok()) return;
  queued.reset();  // with what it holds, before the caller asks for it again
  End({.status = status, .retry_hint = absl::IsResourceExhausted(status)});
}

const UnaryMethod* UnaryReactor::FindMethod(absl::string_view name) {
  static constexpr UnaryMethod kMethods[] = {
      {"Attend", &UnaryReactor::Submit<ComputeJob, PrepareAttend, ToAttendResponse>},
      {"Encode", &UnaryReactor::Submit<ComputeJob, PrepareEncode, ToEncodeResponse>},
      {"PutMemory", &UnaryReactor::Submit<RegistrationJob, PreparePutMemory, ToPutMemoryResponse>},
  };
  for (const UnaryMethod& method : kMethods) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

void UnaryReactor::OnCancel() {
  cancelled_->store(true, std::memory_order_relaxed);
  End({LostCallerError(call_, context_)});
}

void UnaryReactor::End(Ending ending) {
  std::unique_ptr<Admission::Permit> permit;
  absl::MutexLock lock(&mutex_);
  if (phase_ == Phase::kFinished) return;
  if (ending.only_in && phase_ != *ending.only_in) return;
  phase_ = Phase::kFinished;
  permit = std::move(permit_);
  receive_timeout_.Cancel();
  if (ending.status.ok()) account_.SetQueued(ending.queued);
  account_.Report(ending.status, context_.metrics);
  if (ending.retry_hint) call_.AddTrailingMetadata(kRetryPushbackTrailer, kRetryPushbackMs);
  if (!ending.status.ok()) return Finish(ToGrpcStatus(ending.status));
  response_.Swap(&ending.response);
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void UnaryReactor::OnDone() {
  std::unique_ptr<Admission::Slot> slot;
  std::shared_ptr<UnaryReactor> self;
  absl::MutexLock lock(&mutex_);
  response_.Clear();
  slot = std::move(slot_);
  self = std::move(self_);
}

}  // namespace attendant::server
