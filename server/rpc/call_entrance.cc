#include "server/rpc/call_entrance.h"

#include <grpc/grpc.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "server/base/fault.h"
#include "server/base/timer.h"
#include "server/inference/refused_methods.h"
#include "server/rpc/call/peer.h"
#include "server/rpc/call/request_end.h"
#include "server/rpc/call/trace_context.h"
#include "server/rpc/health_call.h"
#include "server/rpc/reflection_call.h"
#include "server/rpc/stream_reactor.h"
#include "server/rpc/unary_reactor.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Ends a call at its headers, and then reports it if it has an account.
class RefusingReactor final : public grpc::ServerGenericBidiReactor {
 public:
  RefusingReactor(const absl::Status& status, const ServiceContext& context,
                  grpc::ServerContextBase& call,
                  std::optional<RequestAccount> account = std::nullopt)
      : status_(status), context_(context), account_(std::move(account)) {
    FinishWith(status, context, call, *this);
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
  std::optional<RequestAccount> account_;
};

}  // namespace

CallEntrance::CallEntrance(ServiceContext context)
    : context_(std::move(context)), needs_certificate_(context_.secrets.NeedCertificates()) {
  PrepareFaults();
  for (const UnaryMethod& method : UnaryReactor::Methods()) recent_[method.name];
  recent_[StreamReactor::kName];
  recent_[ReflectionCall::kName];
  SharedTimer();  // starts its thread while a failure may still be thrown
}

grpc::ServerGenericBidiReactor* CallEntrance::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  grpc::ServerGenericBidiReactor* reactor = nullptr;
  const absl::Status status = Guarded([&] { reactor = Start(call->method(), *call); });
  return status.ok() ? reactor : new (*call) RefusingReactor(status, context_, *call);
}

grpc::ServerGenericBidiReactor* CallEntrance::Start(absl::string_view path,
                                                    grpc::CallbackServerContext& call) {
  if (absl::StartsWith(path, HealthCall::kPrefix)) {
    const std::string peer = PeerOf(call, context_.limits.trusted_proxies);
    grpc::ServerGenericBidiReactor* health = HealthCall::Start(path, peer, context_, health_, call);
    return health != nullptr ? health : StartMethod(path, peer, call);
  }
  const absl::StatusOr<std::string> peer = Identify(call);
  if (!peer.ok()) return new (call) RefusingReactor(peer.status(), context_, call);
  return StartMethod(path, *peer, call);
}

absl::StatusOr<std::string> CallEntrance::Identify(const grpc::CallbackServerContext& call) const {
  if (needs_certificate_ && !call.auth_context()->IsPeerAuthenticated()) {
    return absl::UnauthenticatedError("the call needs a valid certificate");
  }
  return IdentifyPeer(call, context_.limits.trusted_proxies, context_.secrets);
}

grpc::ServerGenericBidiReactor* CallEntrance::StartMethod(absl::string_view path,
                                                          const std::string& peer,
                                                          grpc::CallbackServerContext& call) {
  static const std::string stream_path =
      absl::StrCat("/", v1::EncoderService::service_full_name(), "/", StreamReactor::kName);
  const UnaryMethod* unary = UnaryReactor::FindMethod(path);
  const bool reflection = path == ReflectionCall::kPath;
  const bool stream = reflection || path == stream_path;
  if (unary == nullptr && !stream) {
    return new (call) RefusingReactor(absl::UnimplementedError(WhyNoMethod(path)), context_, call);
  }
  const char* name = reflection ? ReflectionCall::kName
                     : stream   ? StreamReactor::kName
                                : unary->name;
  const std::string trace = TraceParentOf(call);
  if (!trace.empty()) call.AddTrailingMetadata(kTraceParent, trace);
  CallEntry entry = {method_context_,
                     recent_.find(name)->second,
                     call,
                     peer,
                     {},
                     {},
                     RequestAccount(name, trace, context_.clock.Now())};
  absl::Status status = stream ? context_.admission.TakeStream(entry.peer, entry.place)
                               : context_.admission.TakeSlot(entry.peer, entry.place);
  if (stream && status.ok()) {
    const Budget::Claim permit = {entry.peer, RecentSize::kLeast, HeldFor::kReceiving};
    status = context_.admission.Charge(permit, entry.memory);
  }
  // Receiving what is refused then takes a full server's time from what it has accepted.
  if (unary != nullptr && unary->quick == nullptr && status.ok()) {
    status = context_.queue.CheckAnother(entry.peer, DeadlineOf(call, context_.clock));
  }
  if (!status.ok()) {
    return new (call) RefusingReactor(status, context_, call, std::move(entry.account));
  }
  if (reflection) return ReflectionCall::Start(std::move(entry), open_streams_);
  if (stream) return StreamReactor::Start(std::move(entry), open_streams_);
  return UnaryReactor::Start(*unary, std::move(entry));
}

}  // namespace attendant::server
