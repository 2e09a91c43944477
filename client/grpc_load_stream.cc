#include "client/grpc_load_stream.h"

#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/execution_reader.h"
#include "client/prepared_request_wire.h"
#include "client/proto_conversion.h"

namespace attendant::client {
namespace {

constexpr char kEncodeStream[] = "/attendant.v1.EncoderService/EncodeStream";

using Done = Callback<Execution>;

// Returns an EncodeStreamRequest that shares the slices of a serialized EncodeRequest.
grpc::ByteBuffer Wrap(uint64_t id, const grpc::ByteBuffer& request) {
  using google::protobuf::internal::WireFormatLite;
  using google::protobuf::io::CodedOutputStream;
  uint8_t head[32];
  uint8_t* end =
      WireFormatLite::WriteUInt64ToArray(v1::EncodeStreamRequest::kIdFieldNumber, id, head);
  end = WireFormatLite::WriteTagToArray(v1::EncodeStreamRequest::kRequestFieldNumber,
                                        WireFormatLite::WIRETYPE_LENGTH_DELIMITED, end);
  end = CodedOutputStream::WriteVarint64ToArray(request.Length(), end);
  std::vector<grpc::Slice> slices;
  request.Dump(&slices);
  slices.insert(slices.begin(), grpc::Slice(head, static_cast<size_t>(end - head)));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// One EncodeStream call. It owns itself until it has ended.
class StreamCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                   public std::enable_shared_from_this<StreamCall> {
 public:
  StreamCall(const Channel& channel, absl::Duration timeout) : hold_(channel), timeout_(timeout) {}

  static std::shared_ptr<StreamCall> Start(const Channel& channel, absl::Duration timeout) {
    auto call = std::make_shared<StreamCall>(channel, timeout);
    call->self_ = call;
    channel.generic_stub.PrepareBidiStreamingCall(&call->context_, kEncodeStream, {}, call.get());
    call->AddHold();  // writes start outside of gRPC's reactions
    call->StartRead(&call->answer_);
    call->StartCall();
    return call;
  }

  // Returns false, and never runs `done`, if the stream takes no more requests.
  bool Send(const grpc::ByteBuffer& request, const Done& done) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return false;
    Pending& pending = pending_[++last_id_];
    pending.done = done;
    if (timeout_ != absl::InfiniteDuration()) pending.alarm = GiveUpLater(last_id_);
    outbox_.push_back(Wrap(last_id_, request));
    if (outbox_.size() == 1) StartWrite(&outbox_.front());
    return true;
  }

  // Takes no more requests and waits until all of them have been answered or have timed out. If any
  // has timed out, the call is cancelled instead of waiting for the server to end it.
  void CloseAndWait() {
    absl::MutexLock lock(&mutex_);
    Close();
    const auto answered = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return pending_.empty(); };
    mutex_.Await(absl::Condition(&answered));
    if (gave_up_) context_.TryCancel();
    const auto ended = [this]()
                           ABSL_NO_THREAD_SAFETY_ANALYSIS { return ended_ && giving_up_ == 0; };
    mutex_.Await(absl::Condition(&ended));
  }

 private:
  struct Pending {
    Done done;
    std::unique_ptr<grpc::Alarm> alarm;  // null without a timeout
  };

  std::unique_ptr<grpc::Alarm> GiveUpLater(uint64_t id) {
    auto alarm = std::make_unique<grpc::Alarm>();
    alarm->Set(absl::ToChronoTime(absl::Now() + timeout_),
               [self = shared_from_this(), id](bool expired) {
                 if (expired) self->GiveUp(id);
               });
    return alarm;
  }

  void GiveUp(uint64_t id) {
    const Done done = TakePending(id, /*gives_up=*/true);
    if (!done) return;
    done(absl::DeadlineExceededError("no response on the stream in time"));
    absl::MutexLock lock(&mutex_);
    --giving_up_;
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    outbox_.pop_front();
    if (!ok) outbox_.clear();
    if (!outbox_.empty()) {
      StartWrite(&outbox_.front());
    } else if (closed_) {
      FinishWriting();
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      absl::MutexLock lock(&mutex_);
      Close();
      return;
    }
    absl::StatusOr<StreamAnswer> answer = ReadStreamAnswer(answer_);
    if (!answer.ok()) {
      context_.TryCancel();
    } else if (const Done done = TakePending(answer->id)) {
      done(std::move(answer->execution));
    }
    StartRead(&answer_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<StreamCall> self = std::move(self_);  // which goes last
    std::map<uint64_t, Pending> unanswered;
    {
      absl::MutexLock lock(&mutex_);
      unanswered.swap(pending_);
    }
    const absl::Status why =
        status.ok() ? absl::InternalError("the stream ended without a response") : FromGrpc(status);
    for (const auto& [id, pending] : unanswered) pending.done(why);
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }

  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(closed_, true)) return;
    if (outbox_.empty()) FinishWriting();
  }

  // To be called once, when nothing is being written and nothing more will be.
  void FinishWriting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    StartWritesDone();
    RemoveHold();
  }

  Done TakePending(uint64_t id, bool gives_up = false) {
    Pending taken;  // declared before the lock, so that its alarm is destroyed after the unlocking
    absl::MutexLock lock(&mutex_);
    const auto found = pending_.find(id);
    if (found == pending_.end()) return nullptr;
    if (gives_up) {
      gave_up_ = true;
      ++giving_up_;
    }
    taken = std::move(found->second);
    pending_.erase(found);
    return std::move(taken.done);
  }

  const Channel::Hold hold_;
  const absl::Duration timeout_;
  std::shared_ptr<StreamCall> self_;
  grpc::ClientContext context_;
  grpc::ByteBuffer answer_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int giving_up_ ABSL_GUARDED_BY(mutex_) = 0;  // timed-out requests whose `done` is running
  bool gave_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::ByteBuffer> outbox_ ABSL_GUARDED_BY(mutex_);  // the front is being written
};

class GrpcLoadStream : public LoadStream {
 public:
  GrpcLoadStream(std::shared_ptr<const Channel> channel, const CallOptions& call)
      : channel_(std::move(channel)), timeout_(call.timeout) {}

  ~GrpcLoadStream() override {
    if (call_ != nullptr) call_->CloseAndWait();
  }

  void SendAsync(const PreparedRequest& request, Done done) override {
    absl::MutexLock lock(&mutex_);
    while (call_ == nullptr || !call_->Send(request.wire().message, done)) {
      call_ = StreamCall::Start(*channel_, timeout_);
    }
  }

 private:
  const std::shared_ptr<const Channel> channel_;
  const absl::Duration timeout_;
  absl::Mutex mutex_;
  std::shared_ptr<StreamCall> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<LoadStream> MakeLoadStream(std::shared_ptr<const Channel> channel,
                                           const CallOptions& call) {
  return std::make_unique<GrpcLoadStream>(std::move(channel), call);
}

}  // namespace attendant::client
