#include "server/rpc/call_methods.h"

#include <utility>

#include "absl/strings/strip.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/inference/infer.h"
#include "server/inference/inference_methods.h"
#include "server/rpc/calls.h"

namespace attendant::server {
namespace {

template <PrepareJob prepare>
std::shared_ptr<Call> Queued(CallArgs entry) {
  return NewJobCall(std::move(entry), prepare);
}

template <InlineMethod method>
std::shared_ptr<Call> Answered(CallArgs entry) {
  return NewInlineCall(std::move(entry), method);
}

}  // namespace

absl::Span<const CallMethod> CallMethods() {
  using Needs = CallMethod::Needs;
  static constexpr const char* kEncoder = v1::EncoderService::service_full_name();
  static constexpr const char* kInference = inference::GRPCInferenceService::service_full_name();
  static constexpr const char* kHealth = "grpc.health.v1.Health";
  static constexpr const char* kReflection = "grpc.reflection.v1alpha.ServerReflection";
  static constexpr CallMethod kMethods[] = {
      {kEncoder, "Attend", Needs::kQueue, Queued<PrepareAttend>},
      {kEncoder, "Encode", Needs::kQueue, Queued<PrepareEncode>},
      {kEncoder, "EncodeStream", Needs::kStream, NewStreamCall},
      {kEncoder, "Tokenize", Needs::kQueue, Queued<PrepareTokenize>},
      {kEncoder, "PutMemory", Needs::kQueue, Queued<PreparePutMemory>},
      {kEncoder, "ListModels", Needs::kSlot, Answered<ListModels>},
      {kEncoder, "GetModel", Needs::kSlot, Answered<GetModel>},
      {kEncoder, "GetTokenizer", Needs::kSlot, Answered<GetTokenizer>},
      {kEncoder, "DropMemory", Needs::kSlot, Answered<DropMemory>},
      {kInference, "ModelInfer", Needs::kQueue, Queued<PrepareInfer>},
      {kInference, "ServerLive", Needs::kSlot, Answered<Quick<ServerLive>>},
      {kInference, "ServerReady", Needs::kSlot, Answered<Quick<ServerReady>>},
      {kInference, "ModelReady", Needs::kSlot, Answered<Quick<ModelReady>>},
      {kInference, "ServerMetadata", Needs::kSlot, Answered<Quick<ServerMetadata>>},
      {kInference, "ModelMetadata", Needs::kSlot, Answered<Quick<ModelMetadata>>},
      {kInference, "ModelConfig", Needs::kSlot, Answered<Quick<ModelConfig>>},
      {kInference, "ModelStatistics", Needs::kSlot, Answered<Quick<ModelStatistics>>},
      {kInference, "RepositoryIndex", Needs::kSlot, Answered<Quick<RepositoryIndex>>},
      {kInference, "SystemSharedMemoryStatus", Needs::kSlot, Answered<Quick<SharedMemoryStatus>>},
      {kInference, "SystemSharedMemoryUnregister", Needs::kSlot,
       Answered<Quick<SharedMemoryUnregister>>},
      {kInference, "CudaSharedMemoryStatus", Needs::kSlot, Answered<Quick<SharedMemoryStatus>>},
      {kInference, "CudaSharedMemoryUnregister", Needs::kSlot,
       Answered<Quick<SharedMemoryUnregister>>},
      {kHealth, "Check", Needs::kNothing, Answered<CheckHealth>},
      {kHealth, "Watch", Needs::kNothing, NewHealthWatch},
      {kReflection, "ServerReflectionInfo", Needs::kStream, NewReflectionCall},
  };
  return kMethods;
}

const CallMethod* FindCallMethod(absl::string_view path) {
  if (!absl::ConsumePrefix(&path, "/")) return nullptr;
  for (const CallMethod& method : CallMethods()) {
    absl::string_view rest = path;
    if (absl::ConsumePrefix(&rest, method.service) && absl::ConsumePrefix(&rest, "/") &&
        rest == method.name) {
      return &method;
    }
  }
  return nullptr;
}

}  // namespace attendant::server
