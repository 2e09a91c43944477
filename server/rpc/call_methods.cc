#include "server/rpc/call_methods.h"

#include "absl/strings/strip.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/inference/inference_methods.h"
#include "server/rpc/calls.h"
#include "server/rpc/model_methods.h"

namespace attendant::server {

absl::Span<const CallMethod> CallMethods() {
  using Needs = CallMethod::Needs;
  static constexpr const char* kEncoder = v1::EncoderService::service_full_name();
  static constexpr const char* kInference = inference::GRPCInferenceService::service_full_name();
  static constexpr const char* kHealth = "grpc.health.v1.Health";
  static constexpr const char* kReflection = "grpc.reflection.v1alpha.ServerReflection";
  static constexpr CallMethod kMethods[] = {
      {kEncoder, "Attend", Needs::kQueue, NewAttendCall},
      {kEncoder, "Encode", Needs::kQueue, NewEncodeCall},
      {kEncoder, "EncodeStream", Needs::kStream, NewStreamCall},
      {kEncoder, "PutMemory", Needs::kQueue, NewPutMemoryCall},
      {kEncoder, "ListModels", Needs::kSlot, nullptr, ListModels},
      {kEncoder, "GetModel", Needs::kSlot, nullptr, GetModel},
      {kEncoder, "GetTokenizer", Needs::kSlot, nullptr, GetTokenizer},
      {kEncoder, "DropMemory", Needs::kSlot, nullptr, DropMemory},
      {kInference, "ModelInfer", Needs::kQueue, NewModelInferCall},
      {kInference, "ServerLive", Needs::kSlot, nullptr, Quick<ServerLive>},
      {kInference, "ServerReady", Needs::kSlot, nullptr, Quick<ServerReady>},
      {kInference, "ModelReady", Needs::kSlot, nullptr, Quick<ModelReady>},
      {kInference, "ServerMetadata", Needs::kSlot, nullptr, Quick<ServerMetadata>},
      {kInference, "ModelMetadata", Needs::kSlot, nullptr, Quick<ModelMetadata>},
      {kInference, "ModelConfig", Needs::kSlot, nullptr, Quick<ModelConfig>},
      {kInference, "ModelStatistics", Needs::kSlot, nullptr, Quick<ModelStatistics>},
      {kInference, "RepositoryIndex", Needs::kSlot, nullptr, Quick<RepositoryIndex>},
      {kInference, "SystemSharedMemoryStatus", Needs::kSlot, nullptr, Quick<SharedMemoryStatus>},
      {kInference, "SystemSharedMemoryUnregister", Needs::kSlot, nullptr,
       Quick<SharedMemoryUnregister>},
      {kInference, "CudaSharedMemoryStatus", Needs::kSlot, nullptr, Quick<SharedMemoryStatus>},
      {kInference, "CudaSharedMemoryUnregister", Needs::kSlot, nullptr,
       Quick<SharedMemoryUnregister>},
      {kHealth, "Check", Needs::kNothing, nullptr, CheckHealth},
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
