// Entrance of all calls of the service, and of unknown methods.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "server/admission/recent_size.h"
#include "server/request/service_context.h"
#include "server/rpc/model_methods.h"
#include "server/rpc/open_streams.h"

namespace attendant::server {

// Takes a slot or a stream's place for each call, from its headers, and hands it to its reactor.
// Refuses the call without one: RESOURCE_EXHAUSTED, with the reason and the retry trailer; while
// draining: UNAVAILABLE; an unknown method: UNIMPLEMENTED. All before anything of the body is read.
class CallEntrance final : public grpc::CallbackGenericService {
 public:
  // Both outlive the service and its calls.
  CallEntrance(const ServiceContext& context, const ModelMethods& models);

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override;

  // The reactor of a call of the service's method `name`, which may be unknown.
  grpc::ServerGenericBidiReactor* Start(absl::string_view name, grpc::CallbackServerContext& call);

  // Lets every stream end once its accepted items are answered. Any thread.
  void Drain() { open_streams_.Drain(); }

 private:
  grpc::ServerGenericBidiReactor* TryStart(absl::string_view name,
                                           grpc::CallbackServerContext& call);

  const ServiceContext& context_;
  const ModelMethods& models_;
  OpenStreams open_streams_;
  std::map<std::string, RecentSize, std::less<>> recent_;  // by method
};

}  // namespace attendant::server
