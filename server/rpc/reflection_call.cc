#include "server/rpc/reflection_call.h"

#include <new>
#include <utility>

#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/base/fault.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/peer.h"
#include "server/rpc/call/small_message.h"
#include "server/rpc/reflection_answer.h"
#include "server/transport/grpc_traffic.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using grpc::reflection::v1alpha::ServerReflectionRequest;

constexpr SmallMessageNames kReflectionRequestNames = {"a reflection request", "the message"};

}  // namespace

grpc::ServerGenericBidiReactor* ReflectionCall::Start(CallEntry entry, OpenStreams& open_streams) {
  std::shared_ptr<ReflectionCall> reactor(new ReflectionCall(std::move(entry), open_streams));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
  }
  const absl::Status status = Guarded([&] { return reactor->Begin(); });
  if (!status.ok()) reactor->End(status);
  return reactor.get();
}

ReflectionCall::ReflectionCall(CallEntry entry, OpenStreams& open_streams)
    : context_(entry.context.service),
      call_(entry.call),
      peer_(std::move(entry.peer)),
      account_(std::move(entry.account)),
      open_streams_(open_streams),
      place_(std::move(entry.place)),
      memory_(std::move(entry.memory)) {}

absl::Status ReflectionCall::Begin() {
  const Budget::Answer answer =
      context_.admission.reflection_streams().TryTake({peer_, 1}, reflection_place_);
  if (answer != Budget::Answer::kTaken) {
    const bool share = answer == Budget::Answer::kShare;
    return Refused(share ? Refusal::kPeerShare : Refusal::kStreams,
                   "too many reflection streams are open");
  }
  open_streams_.Add(shared_from_this());
  return Read();
}

absl::Status ReflectionCall::Read() {
  absl::MutexLock lock(&mutex_);
  if (ended_) return absl::OkStatus();
  if (context_.admission.closed()) return DrainingError();
  const ReceiptLimits limits = {context_.limits.max_request_bytes, context_.limits.receive_timeout,
                                context_.limits.min_receive_rate};
  ReceivingCall call = {context_.admission, peer_,
                        [weak = weak_from_this()](const absl::Status& status) {
                          if (const auto self = weak.lock()) self->End(status);
                        }};
  receipt_ =
      std::make_unique<BodyReceipt>(FindConnection(ConnectionOf(call_.peer())), std::move(call),
                                    limits, std::move(memory_), RealClock().Now());
  LimitReceiving();
  StartRead(&message_);
  return absl::OkStatus();
}

void ReflectionCall::LimitReceiving() {
  const bool limited = time_limit_.Set(
      receipt_->next_look(), weak_from_this(), [step = ++step_](ReflectionCall& self) {
        const absl::Status status = Guarded([&] { self.OnReceiveTimeout(step); });
        if (!status.ok()) self.End(status);
      });
  if (!limited) throw std::bad_alloc();  // no message is waited for without a limit
}

void ReflectionCall::OnReceiveTimeout(uint64_t step) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_ || step != step_ || receipt_ == nullptr) return;
    status = receipt_->Look(RealClock().Now());
    if (status.ok()) return LimitReceiving();
  }
  End(status);
}

void ReflectionCall::OnReadDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    time_limit_.Reset();
    memory_ = receipt_->Finish(static_cast<int64_t>(message_.Length()));
    receipt_.reset();
  }
  if (!ok) return End(absl::OkStatus());
  const absl::Status status = Guarded([&] { return Receive(); });
  if (!status.ok()) End(status);
}

absl::Status ReflectionCall::Receive() {
  RequestAccount account = account_.ForItem(context_.clock.Now());
  const absl::Status status = Answer();
  account.Report(status, context_);
  return status;
}

absl::Status ReflectionCall::Answer() {
  ServerReflectionRequest request;
  absl::Status status = ParseSmallMessage(message_, kReflectionRequestNames, request);
  message_.Clear();
  if (status.ok()) status = context_.admission.TakeSlot(peer_, slot_);
  if (!status.ok()) return status;
  grpc::ByteBuffer response = SerializeResponse(AnswerReflection(request), {});
  // Descriptors take little; if even that has no room, the permit stays as it is.
  memory_.Change(static_cast<int64_t>(response.Length()), HeldFor::kAnswer);
  absl::MutexLock lock(&mutex_);
  if (ended_) return absl::OkStatus();
  response_.Swap(&response);
  LimitSending();
  StartWrite(&response_);
  return absl::OkStatus();
}

void ReflectionCall::OnWriteDone(bool ok) {
  slot_.Release();
  memory_.Change(RecentSize::kLeast, HeldFor::kReceiving);
  const absl::Status status =
      Guarded([&] { return ok ? Read() : LostCallerError(call_, context_); });
  if (!status.ok()) End(status);
}

void ReflectionCall::OnCancel() {
  End(Guarded([&] { return LostCallerError(call_, context_); }));
}

void ReflectionCall::Drain() {
  const absl::Status draining = Guarded(DrainingError);
  {
    absl::MutexLock lock(&mutex_);
    if (receipt_ == nullptr) return;  // it reads no further
  }
  End(draining);
}

void ReflectionCall::End(const absl::Status& status) noexcept {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  ended_ = true;
  LimitSending();
  if (status.ok()) return Finish(grpc::Status::OK);
  FinishWith(status, context_, call_, *this);
}

// Cancelling is all that gRPC lets one do to a write that makes no progress.
void ReflectionCall::LimitSending() {
  time_limit_.Set(TimeLimit::In(context_.limits.send_timeout), weak_from_this(),
                  [step = ++step_](ReflectionCall& self) {
                    absl::MutexLock lock(&self.mutex_);
                    if (self.done_ || step != self.step_) return;
                    self.context_.metrics.CountUnsentAnswer();
                    self.call_.TryCancel();
                  });
}

void ReflectionCall::OnDone() {
  open_streams_.Remove(this);
  Budget::Hold place, reflection_place, memory, slot;
  std::unique_ptr<BodyReceipt> receipt;
  std::shared_ptr<ReflectionCall> self;
  absl::MutexLock lock(&mutex_);
  done_ = true;
  time_limit_.Reset();
  slot = std::move(slot_);
  memory = std::move(memory_);
  reflection_place = std::move(reflection_place_);
  place = std::move(place_);
  receipt = std::move(receipt_);
  self = std::move(self_);
}

}  // namespace attendant::server
