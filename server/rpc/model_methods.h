// The registered service: ListModels on generated messages; GetModel and DropMemory on bytes, since
// gRPC answers a message that it cannot parse with UNIMPLEMENTED; the payload methods are marked
// generic and arrive at the generic service.
#pragma once

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "server/execution/row_plans.h"
#include "server/request/service_context.h"

namespace attendant::server {

using SmallMethods = v1::EncoderService::WithCallbackMethod_ListModels<
    v1::EncoderService::WithRawCallbackMethod_GetModel<
        v1::EncoderService::WithRawCallbackMethod_DropMemory<v1::EncoderService::Service>>>;
using PartlyGenericService = v1::EncoderService::WithGenericMethod_Attend<
    v1::EncoderService::WithGenericMethod_Encode<v1::EncoderService::WithGenericMethod_EncodeStream<
        v1::EncoderService::WithGenericMethod_PutMemory<SmallMethods>>>>;

class ModelService final : public PartlyGenericService {
 public:
  // Both outlive the service.
  ModelService(const ServiceContext& context, const RowPlans& row_plans)
      : context_(context), row_plans_(row_plans) {}

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* call,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* call,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DropMemory(grpc::CallbackServerContext* call,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

 private:
  const ServiceContext& context_;
  const RowPlans& row_plans_;
};

}  // namespace attendant::server
