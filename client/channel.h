// The channel of a Client, shared by its copies and by the calls under way.
#pragma once

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <memory>

#include "attendant/v1/encoder_service.grpc.pb.h"

namespace attendant::client {

// The messages of grpc.health.v1 in well-known types of the same wire format (one string; one
// enum), so that an application can link its own health.proto beside this library.
using HealthRequest = google::protobuf::StringValue;
using HealthResponse = google::protobuf::Int32Value;

class Channel {
 public:
  // Keeps the channel during a call that ends on a thread of gRPC's. The destructor of a process's
  // last grpc::Channel joins these threads (ReleaseCallbackAlternativeCQ), so that one of them must
  // not run it: it would wait for itself. If the call is the last user of the channel, another
  // thread destroys the channel. Whatever else of the call refers to the channel, as its
  // ClientContext does, has to go before the hold.
  class Hold {
   public:
    explicit Hold(const Channel& channel);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const Channel& channel_;
  };

  static std::shared_ptr<const Channel> Make(const std::shared_ptr<grpc::Channel>& channel);

  // Thread-safe, but their methods are not const.
  mutable v1::EncoderService::Stub stub;
  mutable grpc::GenericStub generic_stub;
  mutable grpc::TemplatedGenericStub<HealthRequest, HealthResponse> health_stub;

 private:
  explicit Channel(const std::shared_ptr<grpc::Channel>& channel)
      : stub(channel), generic_stub(channel), health_stub(channel) {}

  // True for the last user.
  bool Leave() const { return users_.fetch_sub(1) == 1; }

  mutable std::atomic<int> users_ = 1;  // the holds, and the shared_ptrs as one
};

}  // namespace attendant::client
