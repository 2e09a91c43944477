#include <utility>

#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/small_message.h"
#include "server/rpc/calls.h"
#include "server/rpc/reflection_answer.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using grpc::reflection::v1alpha::ServerReflectionRequest;

// Tools ask a few questions and disconnect, and gRPC delivers only complete messages. Reflection
// streams are therefore few, the time for a message runs from the start, and received bytes are
// charged as in a call with a job. Otherwise they hold the same as an EncodeStream: a place among
// the streams while open, and a slot from the arrival of a request until its response is sent.
class ReflectionCall final : public Call {
 public:
  explicit ReflectionCall(CallArgs entry)
      : Call(std::move(entry)), request_recorder_(*std::exchange(account_, std::nullopt)) {}

 private:
  absl::Status Begin() override;
  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Reservation memory) override;
  absl::Status OnNoMessage() override;
  absl::Status OnWritten(bool ok) override;
  void OnEnd() override;

  void Read();
  absl::Status Answer(const grpc::ByteBuffer& message, Budget::Reservation memory);

  const RequestRecorder request_recorder_;  // from which each request has one
  // Only reactions use these, one at a time.
  Budget::Reservation reflection_place_;  // among the streams of reflection
  Budget::Reservation slot_;              // while a request is answered
};

absl::Status ReflectionCall::Begin() {
  const Budget::Answer answer =
      context_.admission.reflection_streams().TryTake({peer_, 1}, reflection_place_);
  if (answer != Budget::Answer::kTaken) {
    const bool share = answer == Budget::Answer::kShare;
    return Refused(share ? Refusal::kPeerShare : Refusal::kStreams,
                   "too many reflection streams are open");
  }
  Read();
  return absl::OkStatus();
}

void ReflectionCall::Read() {
  Budget::Reservation memory;
  {
    absl::MutexLock lock(&mutex_);
    memory = std::move(memory_);
  }
  memory.Change(RecentSize::kLeast, HeldFor::kReceiving);
  Receive(std::move(memory));
  // A Drain before the first read had no effect.
  if (context_.admission.closed()) Drain();
}

absl::Status ReflectionCall::OnMessage(grpc::ByteBuffer message, Budget::Reservation memory) {
  RequestRecorder account = request_recorder_.ForItem(context_.clock.Now());
  const absl::Status status = Answer(message, std::move(memory));
  account.Report(status, context_);
  return status;
}

absl::Status ReflectionCall::Answer(const grpc::ByteBuffer& message, Budget::Reservation memory) {
  ServerReflectionRequest request;
  absl::Status status = ParseSmallMessage(message, "the message", request);
  if (status.ok()) status = context_.admission.TakeSlot(peer_, slot_);
  if (!status.ok()) return status;
  grpc::ByteBuffer response = SerializeResponse(AnswerReflection(request), {});
  // Descriptors take little; if even that has no room, the permit stays as it is.
  memory.Change(static_cast<int64_t>(response.Length()), HeldFor::kAnswer);
  absl::MutexLock lock(&mutex_);
  if (ended_) return absl::OkStatus();
  memory_ = std::move(memory);
  response_.Swap(&response);
  LimitSending();
  StartWrite(&response_);
  return absl::OkStatus();
}

absl::Status ReflectionCall::OnNoMessage() {
  End({absl::OkStatus()});
  return absl::OkStatus();
}

absl::Status ReflectionCall::OnWritten(bool ok) {
  slot_.Release();
  if (!ok) return LostCallerError(call_, context_);
  Read();
  return absl::OkStatus();
}

void ReflectionCall::OnEnd() {
  slot_.Release();
  reflection_place_.Release();
}

}  // namespace

std::shared_ptr<Call> NewReflectionCall(CallArgs entry) {
  return std::make_shared<ReflectionCall>(std::move(entry));
}

}  // namespace attendant::server
