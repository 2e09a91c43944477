// Entrance of all calls: of the service, health checks, reflection, and unknown methods.
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
#include "server/request/quick_method.h"
#include "server/request/service_context.h"
#include "server/rpc/call_methods.h"

namespace attendant::server {

// Takes a slot or a stream's place for each call, from its headers, and begins it (call/call.h).
// Refuses a call whose caller may not make it, see ServerSecrets: UNAUTHENTICATED or
// PERMISSION_DENIED; one without a slot: RESOURCE_EXHAUSTED, with the reason and the retry trailer;
// while draining: UNAVAILABLE; an unknown method: UNIMPLEMENTED. All before anything of the body is
// read. Health checks need neither a permission nor a slot.
class CallEntrance final : public grpc::CallbackGenericService {
 public:
  // Objects that the context refers to outlive the service and its calls.
  explicit CallEntrance(ServiceContext context);

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override;

  // These live as long as the service. With them, other doors answer calls as this one does.
  const ServiceContext& context() const { return context_; }
  const MethodContext& method_context() const { return method_context_; }
  HealthStates& health() { return health_; }

  // To be called after Admission::Close: every stream takes no further item and ends with
  // UNAVAILABLE once its accepted items are answered, so that idle streams do not hold up the
  // drain. Any thread.
  void Drain() { open_streams_.Drain(); }

 private:
  // Sets `admitted`, or returns why the call is refused, with its account if it counts.
  absl::Status Admit(grpc::GenericCallbackServerContext& call, std::shared_ptr<Call>& admitted,
                     std::optional<RequestAccount>& account);
  // Returns the peer of a call that its caller may make.
  absl::StatusOr<std::string> Identify(const grpc::GenericCallbackServerContext& call) const;
  absl::Status TakePlace(CallMethod::Needs needs, CallEntry& entry) const;

  const ServiceContext context_;
  HealthStates health_;
  const MethodContext method_context_{context_, health_};
  const bool needs_certificate_;
  OpenStreams open_streams_;
  std::map<std::string, RecentSize, std::less<>> recent_;  // by method
};

}  // namespace attendant::server
