#include "server/rpc/payload_methods.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/strip.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "server/rpc/request_end.h"
#include "server/rpc/stream_reactor.h"
#include "server/rpc/unary_reactor.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Ends a call at its headers.
class RefusingReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusingReactor(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

grpc::ServerGenericBidiReactor* RefuseSlot(const std::string& method, const ServiceContext& context,
                                           grpc::GenericCallbackServerContext& call) {
  absl::Status status = DrainingError();
  if (!context.admission.closed()) {
    status = absl::ResourceExhaustedError("the server has no free slot for another request");
    call.AddTrailingMetadata(kRetryPushbackTrailer, kRetryPushbackMs);
  }
  RequestAccount(method).Report(status, context.metrics);
  return new RefusingReactor(status);
}

}  // namespace

grpc::ServerGenericBidiReactor* PayloadMethods::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  static const std::string prefix =
      std::string("/") + v1::EncoderService::service_full_name() + "/";
  absl::string_view name = call->method();
  const bool ours = absl::ConsumePrefix(&name, prefix);
  const UnaryMethod* unary = ours ? UnaryReactor::FindMethod(name) : nullptr;
  const bool stream = ours && name == StreamReactor::kName;
  if (unary == nullptr && !stream) {
    return new RefusingReactor(absl::UnimplementedError("the server has no such method"));
  }
  std::unique_ptr<Admission::Slot> slot = context_.admission.TryTakeSlot();
  if (slot == nullptr)
    return RefuseSlot(unary ? unary->name : StreamReactor::kName, context_, *call);
  if (stream) return StreamReactor::Start(context_, *call, std::move(slot), open_streams_);
  return UnaryReactor::Start(context_, *unary, *call, std::move(slot));
}

}  // namespace attendant::server
