#include "server/rpc/health_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "grpc/health/v1/health.pb.h"
#include "server/execution/fault.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/request_end.h"
#include "server/rpc/call/small_message.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr absl::Duration kReceiveTime = absl::Seconds(2);
constexpr SmallMessageNames kHealthRequestNames = {"a health request", "the request"};

HealthCheckResponse::ServingStatus StatusOf(std::optional<bool> serving) {
  if (!serving) return HealthCheckResponse::SERVICE_UNKNOWN;
  return *serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

grpc::ByteBuffer Serialize(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return SerializeResponse(response, {});
}

}  // namespace

grpc::ServerGenericBidiReactor* HealthCall::Start(absl::string_view path, const std::string& peer,
                                                  const ServiceContext& context,
                                                  HealthStates& states,
                                                  grpc::CallbackServerContext& call) {
  if (!absl::ConsumePrefix(&path, kPrefix)) return nullptr;
  if (path != "Check" && path != "Watch") return nullptr;
  const Method method = path == "Check" ? Method::kCheck : Method::kWatch;
  std::shared_ptr<HealthCall> reactor(new HealthCall(method, context, states, call));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
  }
  const absl::Status status = Guarded([&] { reactor->AskForPermit(peer); });
  if (!status.ok()) reactor->End(status);
  return reactor.get();
}

void HealthCall::AskForPermit(const std::string& peer) {
  std::unique_ptr<Budget::Pending> pending_permit = context_.admission.small_messages().Await(
      {peer, 1, HeldFor::kReceiving}, [weak = weak_from_this()](Budget::Hold permit) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        const absl::Status status = Guarded([&] { self->OnPermit(std::move(permit)); });
        if (!status.ok()) self->End(status);
      });
  absl::MutexLock lock(&mutex_);
  pending_permit_ = std::move(pending_permit);
}

void HealthCall::OnPermit(Budget::Hold permit) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  permit_ = std::move(permit);
  const absl::Duration time = std::min(context_.limits.receive_timeout, kReceiveTime);
  const bool limited = time_limit_.Set(TimeLimit::In(time), weak_from_this(), [](HealthCall& self) {
    self.End(Guarded(
        [] { return absl::DeadlineExceededError("the request's body did not arrive in time"); }));
  });
  if (!limited) throw std::bad_alloc();  // no body is waited for without a limit
  StartRead(&message_);
}

void HealthCall::OnReadDone(bool ok) {
  Budget::Hold permit;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    time_limit_.Reset();
    permit = std::move(permit_);
  }
  const absl::Status status = Guarded([&] {
    return ok ? Receive() : absl::InvalidArgumentError("the call ended without a request message");
  });
  if (!status.ok()) End(status);
}

absl::Status HealthCall::Receive() {
  HealthCheckRequest request;
  const absl::Status status = ParseSmallMessage(message_, kHealthRequestNames, request);
  message_.Clear();
  if (!status.ok()) return status;
  name_ = std::move(*request.mutable_service());
  return method_ == Method::kCheck ? Check() : Watch();
}

absl::Status HealthCall::Check() {
  const std::optional<bool> serving = states_.Find(name_);
  if (!serving) return absl::NotFoundError("the server has no service or model of that name");
  grpc::ByteBuffer response = Serialize(StatusOf(serving));
  absl::MutexLock lock(&mutex_);
  if (ended_) return absl::OkStatus();
  ended_ = true;
  LimitSending();
  response_.Swap(&response);
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  return absl::OkStatus();
}

absl::Status HealthCall::Watch() {
  if (!states_.Watch(shared_from_this())) {
    return Refused(Refusal::kStreams, "too many health watches are open");
  }
  absl::MutexLock lock(&mutex_);
  watching_ = true;
  Advance();
  return absl::OkStatus();
}

void HealthCall::OnChange() {
  const absl::Status status = Guarded([&] {
    absl::MutexLock lock(&mutex_);
    Advance();
  });
  if (!status.ok()) End(status);
}

void HealthCall::Advance() {
  if (!watching_ || writing_ || ended_) return;
  const HealthCheckResponse::ServingStatus status = StatusOf(states_.Find(name_));
  if (sent_ == status) return;
  response_ = Serialize(status);
  sent_ = status;
  writing_ = true;
  StartWrite(&response_);
}

void HealthCall::OnWriteDone(bool ok) {
  if (!ok) return End(Guarded([] { return absl::CancelledError("the caller is gone"); }));
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
  }
  OnChange();
}

void HealthCall::OnCancel() {
  End(Guarded([&] { return LostCallerError(call_, context_); }));
}

void HealthCall::End(const absl::Status& status) noexcept {
  Budget::Hold permit;
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  ended_ = true;
  permit = std::move(permit_);
  LimitSending();
  FinishWith(status, context_, call_, *this);
}

// Cancelling is all that gRPC lets one do to a write that makes no progress.
void HealthCall::LimitSending() {
  time_limit_.Set(TimeLimit::In(context_.limits.send_timeout), weak_from_this(),
                  [](HealthCall& self) {
                    absl::MutexLock lock(&self.mutex_);
                    if (!self.done_) self.call_.TryCancel();
                  });
}

void HealthCall::OnDone() {
  std::shared_ptr<HealthCall> self;
  absl::MutexLock lock(&mutex_);
  done_ = true;
  time_limit_.Reset();
  self = std::move(self_);
}

}  // namespace attendant::server
