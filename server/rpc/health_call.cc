#include "server/rpc/health_call.h"

#include <new>
#include <utility>

#include "absl/strings/strip.h"
#include "grpc/health/v1/health.pb.h"
#include "server/base/fault.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/peer.h"
#include "server/rpc/call/request_end.h"
#include "server/rpc/call/small_message.h"
#include "server/transport/grpc_traffic.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

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
  std::shared_ptr<HealthCall> reactor(new HealthCall(method, peer, context, states, call));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
  }
  const absl::Status status = Guarded([&] { reactor->Read(); });
  if (!status.ok()) reactor->End(status);
  return reactor.get();
}

void HealthCall::Read() {
  const ReceivingCall call = {context_.admission, peer_,
                              [weak = weak_from_this()](const absl::Status& status) {
                                if (const auto self = weak.lock()) self->End(status);
                              }};
  auto receipt = std::make_unique<SmallReceipt>(FindConnection(ConnectionOf(call_.peer())), call,
                                                context_.limits.receive_timeout);
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  receipt_ = std::move(receipt);
  LimitReceiving();
  StartRead(&message_);
}

void HealthCall::LimitReceiving() {
  const bool limited =
      time_limit_.Set(receipt_->next_look(), weak_from_this(), [](HealthCall& self) {
        const absl::Status status = Guarded([&] { self.OnReceiveTimeout(); });
        if (!status.ok()) self.End(status);
      });
  if (!limited) throw std::bad_alloc();  // no body is waited for without a limit
}

void HealthCall::OnReceiveTimeout() {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (receipt_ == nullptr) return;
    status = receipt_->Look();
    if (status.ok()) return LimitReceiving();
  }
  End(status);
}

void HealthCall::OnReadDone(bool ok) {
  std::unique_ptr<SmallReceipt> receipt;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    time_limit_.Reset();
    receipt = std::move(receipt_);
  }
  receipt.reset();
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
  Budget::Hold watch;
  const Budget::Answer answer = context_.admission.health_watches().TryTake({peer_, 1}, watch);
  if (answer != Budget::Answer::kTaken) {
    return answer == Budget::Answer::kShare
               ? Refused(Refusal::kPeerShare, "the caller has its share of the health watches")
               : Refused(Refusal::kStreams, "too many health watches are open");
  }
  states_.Watch(shared_from_this());
  absl::MutexLock lock(&mutex_);
  watch_ = std::move(watch);
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
  std::unique_ptr<SmallReceipt> receipt;
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  ended_ = true;
  receipt = std::move(receipt_);
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
  Budget::Hold watch;
  absl::MutexLock lock(&mutex_);
  done_ = true;
  time_limit_.Reset();
  watch = std::move(watch_);
  self = std::move(self_);
}

}  // namespace attendant::server
