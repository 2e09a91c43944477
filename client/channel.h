// Channel: a gRPC channel with its stubs, shared by the copies of a Client and by their calls.
#pragma once

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <memory>

#include "attendant/v1/encoder_service.grpc.pb.h"

namespace attendant::client {

// Stand-ins for the messages of grpc.health.v1: well-known types with the same wire format (one
// string, one enum), so that an application can link its own health.proto together with this
// library.
using HealthRequest = google::protobuf::StringValue;
using HealthResponse = google::protobuf::Int32Value;

// Thread-safe.
class Channel {
 public:
  // Keeps the channel during a call that ends on one of gRPC's threads. The destructor of the last
  // grpc::Channel of a process joins these threads (ReleaseCallbackAlternativeCQ in gRPC), so none
  // of them may run it: it would wait for itself. If the call is the last user of the channel, a
  // separate thread destroys the channel. Destroy everything else in the call that refers to the
  // channel, such as its ClientContext, before the hold.
  class Hold {
   public:
    explicit Hold(const Channel& channel);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const Channel& channel_;
  };

  // Returns the stubs on this channel.
  static std::shared_ptr<const Channel> Make(const std::shared_ptr<grpc::Channel>& channel);

  // The stubs are thread-safe, although their methods are not const.
  mutable v1::EncoderService::Stub stub;
  mutable grpc::GenericStub generic_stub;
  mutable grpc::TemplatedGenericStub<HealthRequest, HealthResponse> health_stub;

 private:
  explicit Channel(const std::shared_ptr<grpc::Channel>& channel)
      : stub(channel), generic_stub(channel), health_stub(channel) {}

  // Returns true for the last user.
  bool Leave() const { return users_.fetch_sub(1) == 1; }

  mutable std::atomic<int> users_ = 1;  // the holds, and the shared_ptrs as one
};

}  // namespace attendant::client
