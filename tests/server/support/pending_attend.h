// PendingAttend, an Attend call that a test starts, observes and ends.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/notification.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "tests/support/raw_call.h"

namespace attendant::server {

// An Attend call in the background. The destructor cancels it and waits for its end.
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
  std::string Trailer(const std::string& key) const { return TrailerOf(context_, key); }

 private:
  grpc::ClientContext context_;
  const v1::AttendRequest request_;
  v1::AttendResponse response_;
  grpc::Status status_;
  absl::Notification done_;
};

}  // namespace attendant::server
