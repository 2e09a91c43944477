// CallDispatcher, which admits every gRPC call: the service's, health checks, reflection and
// unknown methods.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/admission/recent_size.h"
#include "server/models/health_states.h"
#include "server/request/inline_method.h"
#include "server/request/service_context.h"
#include "server/rpc/call_methods.h"

namespace attendant::server {

// Takes a slot, or a place among the streams, when a call's headers arrive, and starts the call
// (call/call.h). It refuses, before reading any of the body:
// - calls without permission (see ServerSecrets) with UNAUTHENTICATED or PERMISSION_DENIED;
// - calls without a free slot with RESOURCE_EXHAUSTED, the reason and the retry trailer;
// - all calls while draining with UNAVAILABLE;
// - unknown methods with UNIMPLEMENTED.
// Health checks require neither permission nor a slot.
class CallDispatcher final : public grpc::CallbackGenericService {
 public:
  // Objects referenced by the context must outlive the service and its calls.
  explicit CallDispatcher(ServiceContext context);

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override;

  // Valid as long as the service. The HTTP APIs use them to handle requests as the gRPC methods do.
  const ServiceContext& context() const { return context_; }
  const MethodContext& method_context() const { return method_context_; }
  HealthStates& health() { return health_; }

  // Call after Admission::Close. Each stream stops reading items and ends with UNAVAILABLE once its
  // accepted items are answered, so that idle streams do not delay the drain. Thread-safe.
  void Drain() { open_streams_.Drain(); }

 private:
  // Sets `admitted`, or returns the reason for refusal and sets `account` if the call counts in
  // metrics.
  absl::Status Admit(grpc::GenericCallbackServerContext& call, std::shared_ptr<Call>& admitted,
                     std::optional<RequestRecorder>& account);
  // Returns the peer of the call, or an error if the client may not make it.
  absl::StatusOr<std::string> Identify(const grpc::GenericCallbackServerContext& call) const;
  absl::Status TakePlace(CallMethod::Needs needs, CallArgs& entry);

  const ServiceContext context_;
  HealthStates health_;
  const MethodContext method_context_{context_, health_};
  const bool needs_certificate_;
  OpenStreams open_streams_;
  std::map<std::string, RecentSize, std::less<>> recent_;  // by method
};

}  // namespace attendant::server
