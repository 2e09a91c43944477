#include "server/rpc/call/call.h"

#include <utility>

#include "server/account/peer.h"
#include "server/base/clock.h"
#include "server/metrics/refusal.h"
#include "server/transport/grpc_traffic.h"

namespace attendant::server {

grpc::ServerGenericBidiReactor* Call::Start(const std::shared_ptr<Call>& call) {
  {
    absl::MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  call->React([&] {
    if (call->open_streams_ != nullptr) call->open_streams_->Add(call);
    return call->Begin();
  });
  return call.get();
}

Call::Call(CallArgs entry)
    : method_context_(entry.context),
      context_(entry.context.service),
      call_(entry.call),
      peer_(std::move(entry.peer)),
      connection_(FindConnection(ConnectionOf(call_.peer()))),
      started_(context_.clock.Now()),
      place_(std::make_shared<Budget::Reservation>(std::move(entry.place))),
      memory_(std::move(entry.memory)),
      account_(std::move(entry.account)),
      counted_(account_.has_value()),
      open_streams_(entry.open_streams) {}

void Call::Drain() {
  React([this] { GiveUp(DrainingError()); });
}

ReceivingCall Call::Receiving() {
  return {context_.admission, peer_, [this, weak = weak_from_this()](const absl::Status& status) {
            if (const auto self = weak.lock()) React([&] { GiveUp(status); });
          }};
}

void Call::Receive(Budget::Reservation permit) {
  auto receiver = std::make_unique<MessageReceiver>(connection_, Receiving(), context_.limits,
                                                    std::move(permit), RealClock().Now());
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  message_receiver_ = std::move(receiver);
  LimitReceiving();
  StartRead(&message_);
}

void Call::OnReadDone(bool ok) {
  React([&] { return TakeMessage(ok); });
}

absl::Status Call::TakeMessage(bool ok) {
  grpc::ByteBuffer message;
  std::unique_ptr<MessageReceiver> receiver;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return absl::OkStatus();
    if (message_receiver_ != nullptr) Unlimit();
    receiver = std::move(message_receiver_);
    message.Swap(&message_);
  }
  Budget::Reservation permit;
  if (receiver != nullptr) permit = receiver->Finish(static_cast<int64_t>(message.Length()));
  receiver.reset();
  return ok ? OnMessage(message, std::move(permit)) : OnNoMessage();
}

absl::Status Call::OnNoMessage() {
  if (context_.admission.closed()) return DrainingError();
  if (call_.IsCancelled()) return LostCallerError(call_, context_);
  return absl::InvalidArgumentError("the call ended without a request message");
}

void Call::OnWriteDone(bool ok) {
  React([&] {
    {
      absl::MutexLock lock(&mutex_);
      if (!ended_) Unlimit();
    }
    return OnWritten(ok);
  });
}

void Call::OnCancel() {
  React([this] { OnLost(); });
}

void Call::OnLost() { End({LostCallerError(call_, context_)}); }

void Call::Limit(absl::Time time, Expired expired) {
  Unlimit();
  auto call = [weak = weak_from_this(), number = ++limits_, expired] {
    if (const auto self = weak.lock()) self->React([&] { self->OnLimit(number, expired); });
  };
  limit_ = SharedTimer().Set(time, std::move(call));
}

void Call::Unlimit() {
  if (limit_) SharedTimer().Cancel(*limit_);
  limit_.reset();
}

void Call::OnLimit(uint64_t number, Expired expired) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (number != limits_ || !limit_) return;  // it was on its way when it was replaced
    status = (this->*expired)();
  }
  if (!status.ok()) EndReceiving(status);
}

void Call::LimitReceiving() { Limit(message_receiver_->next_look(), &Call::OnReceiveTimeout); }

absl::Status Call::OnReceiveTimeout() {
  absl::Status status = message_receiver_->Look(RealClock().Now());
  if (status.ok()) LimitReceiving();
  return status;
}

void Call::LimitSending() noexcept {
  Guarded([this] {
    mutex_.AssertHeld();
    Limit(RealClock().Now() + context_.limits.send_timeout, &Call::OnSendTimeout);
  }).IgnoreError();
}

// Cancelling is all that gRPC lets one do to a write that makes no progress.
absl::Status Call::OnSendTimeout() {
  if (counted_) context_.metrics.CountUnsentAnswer();
  call_.TryCancel();
  return absl::OkStatus();
}

void Call::End(CallEnd end) noexcept { End(std::move(end), /*only_receiving=*/false); }

void Call::EndReceiving(const absl::Status& status) noexcept {
  End({status}, /*only_receiving=*/true);
}

void Call::End(CallEnd end, bool only_receiving) noexcept {
  std::shared_ptr<Budget::Reservation> place;  // until the request is counted
  std::unique_ptr<MessageReceiver> receiver;
  std::optional<RequestRecorder> account;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_ || (only_receiving && message_receiver_ == nullptr)) return;
    ended_ = true;
    place = place_;
    Unlimit();
    receiver = std::move(message_receiver_);
    account.swap(account_);
  }
  receiver.reset();
  if (account && end.queued) {
    account->SetQueued(*end.queued);
    context_.admission.ReportAnswered(context_.clock.Now() - started_);
  }
  {
    absl::MutexLock lock(&mutex_);
    const bool responds = end.status.ok() && end.response.Valid();
    if (responds) {
      memory_ = std::move(end.memory);
      response_.Swap(&end.response);
    }
    Finish(end.status, responds ? &response_ : nullptr);
  }
  // Without the mutex, because it may log.
  if (account) account->Report(end.status, context_);
}

void Call::Finish(const absl::Status& status, grpc::ByteBuffer* response) noexcept {
  ended_ = true;
  LimitSending();
  grpc::Status end = EndOf(status, context_, call_);
  if (response == nullptr) return grpc::ServerGenericBidiReactor::Finish(std::move(end));
  StartWriteAndFinish(response, grpc::WriteOptions(), std::move(end));
}

void Call::OnDone() {
  if (open_streams_ != nullptr) open_streams_->Remove(this);
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
    Unlimit();
  }
  React([this] { OnEnd(); });
  std::shared_ptr<Call> self;
  std::shared_ptr<Budget::Reservation> place;
  Budget::Reservation memory;
  absl::MutexLock lock(&mutex_);
  response_.Clear();
  place = std::move(place_);
  memory = std::move(memory_);
  self = std::move(self_);
}

}  // namespace attendant::server
