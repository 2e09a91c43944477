// Entry of the calls of payload methods and of unknown methods.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include "server/request/service_context.h"
#include "server/rpc/open_streams.h"

namespace attendant::server {

// Takes a slot for each call, from its headers, and hands it to its reactor. Without a free slot:
// RESOURCE_EXHAUSTED, with the retry trailer; while draining: UNAVAILABLE; an unknown method:
// UNIMPLEMENTED. All three before anything of the body is read.
class PayloadMethods final : public grpc::CallbackGenericService {
 public:
  // `context` outlives the service and its calls.
  explicit PayloadMethods(const ServiceContext& context) : context_(context) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override;

  // Lets every stream end once its accepted items are answered. Any thread.
  void Drain() { open_streams_.Drain(); }

 private:
  const ServiceContext& context_;
  OpenStreams open_streams_;
};

}  // namespace attendant::server
