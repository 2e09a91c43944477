#include "client/load_stream.h"

#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/execution_reader.h"
#include "client/prepared_request.h"
#include "client/proto_conversion.h"

namespace attendant::client {
namespace {

constexpr char kEncodeStream[] = "/attendant.v1.EncoderService/EncodeStream";

using Done = Client::Callback<Execution>;

// The EncodeStreamRequest around a serialized EncodeRequest, whose slices it shares.
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

// One EncodeStream call. Lives until it has ended, whoever holds it.
class StreamCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  static std::shared_ptr<StreamCall> Start(std::shared_ptr<grpc::GenericStub> stub) {
    auto call = std::make_shared<StreamCall>();
    call->self_ = call;
    stub->PrepareBidiStreamingCall(&call->context_, kEncodeStream, {}, call.get());
    call->stub_ = std::move(stub);
    call->AddHold();  // for what starts outside of the reactions
    call->StartRead(&call->answer_);
    call->StartCall();
    return call;
  }

  // False, and `done` never runs: the stream takes no more.
  bool Send(const grpc::ByteBuffer& request, const Done& done) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return false;
    pending_.emplace(++last_id_, done);
    outbox_.push_back(Wrap(last_id_, request));
    if (outbox_.size() == 1) StartWrite(&outbox_.front());
    return true;
  }

  // Takes no more, and waits until all is answered.
  void CloseAndWait() {
    absl::MutexLock lock(&mutex_);
    Close();
    const auto ended = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return ended_; };
    mutex_.Await(absl::Condition(&ended));
  }

 private:
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
    std::map<uint64_t, Done> unanswered;
    {
      absl::MutexLock lock(&mutex_);
      unanswered.swap(pending_);
    }
    const absl::Status why =
        status.ok() ? absl::InternalError("the stream ended without an answer") : FromGrpc(status);
    for (const auto& [id, done] : unanswered) done(why);
    const std::shared_ptr<StreamCall> self = std::move(self_);
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }

  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(closed_, true)) return;
    if (outbox_.empty()) FinishWriting();
  }

  // Once: nothing is being written, and nothing will be.
  void FinishWriting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    StartWritesDone();
    RemoveHold();
  }

  Done TakePending(uint64_t id) {
    absl::MutexLock lock(&mutex_);
    const auto found = pending_.find(id);
    if (found == pending_.end()) return nullptr;
    Done done = std::move(found->second);
    pending_.erase(found);
    return done;
  }

  std::shared_ptr<StreamCall> self_;
  std::shared_ptr<grpc::GenericStub> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer answer_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Done> pending_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::ByteBuffer> outbox_ ABSL_GUARDED_BY(mutex_);  // the first is being written
};

class GrpcLoadStream : public LoadStream {
 public:
  explicit GrpcLoadStream(std::shared_ptr<grpc::GenericStub> stub) : stub_(std::move(stub)) {}

  ~GrpcLoadStream() override {
    if (call_ != nullptr) call_->CloseAndWait();
  }

  void SendAsync(const PreparedRequest& request, Done done) override {
    absl::MutexLock lock(&mutex_);
    while (call_ == nullptr || !call_->Send(request.wire().message, done)) {
      call_ = StreamCall::Start(stub_);
    }
  }

 private:
  const std::shared_ptr<grpc::GenericStub> stub_;
  absl::Mutex mutex_;
  std::shared_ptr<StreamCall> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<LoadStream> MakeLoadStream(std::shared_ptr<grpc::GenericStub> stub) {
  return std::make_unique<GrpcLoadStream>(std::move(stub));
}

}  // namespace attendant::client
