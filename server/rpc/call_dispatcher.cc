#include "server/rpc/call_dispatcher.h"

#include <grpc/grpc.h>

#include <utility>

#include "absl/strings/match.h"
#include "engine/base/status_macros.h"
#include "server/account/trace_context.h"
#include "server/base/fault.h"
#include "server/base/timer.h"
#include "server/inference/refused_methods.h"
#include "server/rpc/call/call_headers.h"
#include "server/rpc/call/request_end.h"

namespace attendant::server {
namespace {

// Ends a call at its headers, and then reports it if it has an account.
class RefusingReactor final : public grpc::ServerGenericBidiReactor {
 public:
  RefusingReactor(const absl::Status& status, const ServiceContext& context,
                  grpc::ServerContextBase& call, std::optional<RequestRecorder> account)
      : status_(status), context_(context), account_(std::move(account)) {
    Finish(EndOf(status, context, call));
  }
  // In the memory of the call, as gRPC's own reactors are, because there may be no other.
  void* operator new(size_t bytes, grpc::CallbackServerContext& call) {
    return grpc_call_arena_alloc(call.c_call(), bytes);
  }
  void operator delete(void*) {}
  void operator delete(void*, grpc::CallbackServerContext&) {}

  void OnDone() override {
    if (account_) account_->Report(status_, context_);
    delete this;
  }

 private:
  const absl::Status status_;
  const ServiceContext& context_;
  std::optional<RequestRecorder> account_;
};

}  // namespace

CallDispatcher::CallDispatcher(ServiceContext context)
    : context_(std::move(context)), needs_certificate_(context_.secrets.NeedCertificates()) {
  PrepareFaults();
  for (const CallMethod& method : CallMethods()) recent_[method.name];
  SharedTimer();  // starts its thread while a failure may still be thrown
}

grpc::ServerGenericBidiReactor* CallDispatcher::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  std::shared_ptr<Call> admitted;
  std::optional<RequestRecorder> account;
  const absl::Status status = Guarded([&] { return Admit(*call, admitted, account); });
  if (status.ok()) return Call::Start(admitted);
  return new (*call) RefusingReactor(status, context_, *call, std::move(account));
}

absl::Status CallDispatcher::Admit(grpc::GenericCallbackServerContext& call,
                                   std::shared_ptr<Call>& admitted,
                                   std::optional<RequestRecorder>& account) {
  ASSIGN_OR_RETURN(std::string peer, Identify(call));
  const CallMethod* const method = FindCallMethod(call.method());
  if (method == nullptr) return absl::UnimplementedError(WhyNoMethod(call.method()));
  CallArgs entry = {method_context_, recent_.find(method->name)->second, call};
  entry.peer = std::move(peer);
  if (method->needs != CallMethod::Needs::kNothing) {
    const std::string trace = TraceParentOf(call);
    if (!trace.empty()) call.AddTrailingMetadata(kTraceParent, trace);
    account.emplace(method->name, trace, context_.clock.Now());
    RETURN_IF_ERROR(TakePlace(method->needs, entry));
  }
  entry.account.swap(account);
  admitted = method->make(std::move(entry));
  return absl::OkStatus();
}

absl::StatusOr<std::string> CallDispatcher::Identify(
    const grpc::GenericCallbackServerContext& call) const {
  if (absl::StartsWith(call.method(), "/grpc.health.v1.Health/")) {
    return PeerOf(call, context_.limits.trusted_proxies);
  }
  if (needs_certificate_ && !call.auth_context()->IsPeerAuthenticated()) {
    return absl::UnauthenticatedError("the call needs a valid client certificate");
  }
  return IdentifyPeer(call, context_.limits.trusted_proxies, context_.secrets);
}

absl::Status CallDispatcher::TakePlace(CallMethod::Needs needs, CallArgs& entry) {
  Admission& admission = context_.admission;
  if (needs == CallMethod::Needs::kStream) {
    entry.open_streams = &open_streams_;
    RETURN_IF_ERROR(admission.TakeStream(entry.peer, entry.place));
    return admission.Charge({entry.peer, RecentSize::kLeast, HeldFor::kReceiving}, entry.memory);
  }
  const absl::Status status = admission.TakeSlot(entry.peer, entry.place);
  if (!status.ok() || needs != CallMethod::Needs::kQueue) return status;
  // Otherwise, receiving requests that will be refused would take time from accepted ones.
  return context_.queue.CheckAnother(entry.peer, DeadlineOf(entry.call, context_.clock));
}

}  // namespace attendant::server
