#include "server/rpc/model_service.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include "server/models/model_lookup.h"
#include "server/models/model_message.h"
#include "server/models/product_plans.h"
#include "server/rpc/request_end.h"
#include "server/tensors/status_mapping.h"
#include "server/wire/request_codec.h"

namespace attendant::server {
namespace {

constexpr int64_t kMaxRequestBytes = 64 << 10;

void Describe(const ServedModel& model, v1::GetModelResponse& out) {
  const ModelDescription& description = model.encoder->description();
  out.set_name(model.name);
  SetDescription(description, out);
  SetStageCosts(description, out);
  SetComputeMode(model.encoder->mode(), out);
  out.set_gemm(GemmOf(model.encoder->product_plans()));
  out.set_weight_bytes(model.encoder->weight_bytes());
  out.set_base(model.base);
  out.mutable_unused_tensors()->Add(model.unused_tensors.begin(), model.unused_tensors.end());
}

void Describe(const ServiceLimits& from, v1::Limits& to) {
  to.set_max_request_tokens(from.max_request_tokens);
  to.set_max_batch_tokens(from.max_batch_tokens);
  to.set_max_request_bytes(from.max_request_bytes);
  to.set_max_answer_bytes(from.max_answer_bytes);
}

absl::StatusOr<std::shared_ptr<const ServedModel>> Find(const grpc::ByteBuffer& message,
                                                        const ServedModels& models) {
  v1::GetModelRequest request;
  const auto payloads = ParseRequest(message, kMaxRequestBytes, request);
  if (!payloads.ok()) return payloads.status();
  return FindModel(models, request.model());
}

absl::StatusOr<int64_t> Drop(const grpc::ByteBuffer& message, CrossKvStore& store) {
  v1::DropMemoryRequest request;
  const auto payloads = ParseRequest(message, kMaxRequestBytes, request);
  if (!payloads.ok()) return payloads.status();
  return store.Drop(request.handle());
}

}  // namespace

grpc::ServerUnaryReactor* ModelService::ListModels(grpc::CallbackServerContext* call,
                                                   const v1::ListModelsRequest*,
                                                   v1::ListModelsResponse* response) {
  for (const auto& [name, model] : context_.models) response->add_names(name);
  RequestAccount("ListModels").Report(absl::OkStatus(), context_.metrics);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* ModelService::GetModel(grpc::CallbackServerContext* call,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  const auto model = Find(*request, context_.models);
  RequestAccount account("GetModel");
  if (model.ok()) {
    account.SetModel((*model)->name);
    v1::GetModelResponse described;
    Describe(**model, described);
    Describe(context_.limits, *described.mutable_limits());
    SetThreadPlan(context_.thread_plan, described);
    described.mutable_thread_plan()->set_rows_per_thread_from(row_plans_.RowsFrom(**model));
    bool own_buffer;
    grpc::SerializationTraits<v1::GetModelResponse>::Serialize(described, response, &own_buffer);
  }
  account.Report(model.status(), context_.metrics);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpcStatus(model.status()));
  return reactor;
}

grpc::ServerUnaryReactor* ModelService::DropMemory(grpc::CallbackServerContext* call,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  const absl::StatusOr<int64_t> bytes = Drop(*request, context_.cross_kv);
  if (bytes.ok()) {
    v1::DropMemoryResponse dropped;
    dropped.set_bytes(*bytes);
    bool own_buffer;
    grpc::SerializationTraits<v1::DropMemoryResponse>::Serialize(dropped, response, &own_buffer);
  }
  RequestAccount("DropMemory").Report(bytes.status(), context_.metrics);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpcStatus(bytes.status()));
  return reactor;
}

}  // namespace attendant::server
