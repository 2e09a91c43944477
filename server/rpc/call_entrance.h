// Entry of the calls of payload methods and of unknown methods.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <map>
#include <string>

#include "server/admission/recent_size.h"
#include "server/request/service_context.h"
#include "server/rpc/open_streams.h"

namespace attendant::server {

// Takes a slot or a stream's place for each call, from its headers, and hands it to its reactor.
// Refuses the call without one: RESOURCE_EXHAUSTED, with the reason and the retry trailer; while
// draining: UNAVAILABLE; an unknown method: UNIMPLEMENTED. All before anything of the body is read.
class PayloadMethods final : public grpc::CallbackGenericService {
 public:
  // `context` outlives the service and its calls.
  explicit PayloadMethods(const ServiceContext& context);

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override;

  // Lets every stream end once its accepted items are answered. Any thread.
  void Drain() { open_streams_.Drain(); }

 private:
  const ServiceContext& context_;
  OpenStreams open_streams_;
  std::map<std::string, RecentSize, std::less<>> recent_;  // by method
};

}  // namespace attendant::server
