// Calls that a test starts, looks at and ends step by step.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/notification.h"
#include "attendant/v1/encoder_service.grpc.pb.h"

namespace attendant::server {

// An Attend call in the background. Cancelled and waited for when destroyed.
class PendingAttend {
 public:
  PendingAttend(v1::EncoderService::Stub& stub, v1::AttendRequest request,
                std::optional<std::chrono::milliseconds> timeout = std::nullopt)
      : request_(std::move(request)) {
    if (timeout) context_.set_deadline(std::chrono::system_clock::now() + *timeout);
    stub.async()->Attend(&context_, &request_, &response_, [this](grpc::Status status) {
      status_ = std::move(status);
      done_.Notify();
    });
  }
  ~PendingAttend() {
    Cancel();
    done_.WaitForNotification();
  }

  void Cancel() { context_.TryCancel(); }
  const grpc::Status& Wait() {
    done_.WaitForNotification();
    return status_;
  }
  const v1::AttendResponse& response() const { return response_; }
  // The value of a trailer, or "none".
  std::string Trailer(const std::string& key) const {
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto found = trailers.find(key);
    if (found == trailers.end()) return "none";
    return {found->second.data(), found->second.size()};
  }

 private:
  grpc::ClientContext context_;
  const v1::AttendRequest request_;
  v1::AttendResponse response_;
  grpc::Status status_;
  absl::Notification done_;
};

// A call of any method, of which a test sends what it likes: no message, half of the protocol,
// bytes that are no message. Every step waits until it is done. Cancelled when destroyed.
class RawCall {
 public:
  // Sends the headers.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(this);
    Next();
  }
  ~RawCall() {
    context_.TryCancel();
    if (!finished_) Finish();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  bool Write(const std::string& bytes) {
    grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), this);
    return Next();
  }
  bool HalfClose() {
    call_->WritesDone(this);
    return Next();
  }
  bool Read(google::protobuf::Message* message) {
    std::string bytes;
    return ReadBytes(&bytes) && message->ParseFromString(bytes);
  }
  bool ReadBytes(std::string* bytes) {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!Next()) return false;
    bytes->clear();
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(buffer.Dump(&slices).ok());
    for (const grpc::Slice& slice : slices) {
      bytes->append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return true;
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, this);
    Next();
    finished_ = true;
    return status;
  }
  void Cancel() { context_.TryCancel(); }
  std::string Trailer(const std::string& key) const {
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto found = trailers.find(key);
    if (found == trailers.end()) return "none";
    return {found->second.data(), found->second.size()};
  }

 private:
  bool Next() {
    void* tag;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

}  // namespace attendant::server
