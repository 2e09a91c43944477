#include "server/rpc/encoder_service.h"

#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <utility>

#include "server/execution/batch_executor.h"
#include "server/execution/fault.h"
#include "server/execution/row_plans.h"
#include "server/host/node_binding.h"
#include "server/rpc/call_entrance.h"
#include "server/rpc/model_methods.h"

namespace attendant::server {

namespace {

// The part of the service that is registered by name, because reflection names no service without
// such a method. To gRPC it is a stream of bytes, like the methods that arrive at the generic
// service: of a unary one gRPC would receive the whole body before any code of ours runs.
class RegisteredMethods final : public grpc::Service {
 public:
  explicit RegisteredMethods(CallEntrance& entrance) {
    using grpc::ByteBuffer;
    using grpc::internal::RpcMethod;
    const auto start = [&entrance](grpc::CallbackServerContext* call) {
      return entrance.Start(kName, *call);
    };
    AddMethod(new grpc::internal::RpcServiceMethod(kPath, RpcMethod::BIDI_STREAMING,
                                                   /*handler=*/nullptr));
    MarkMethodRawCallback(0,
                          new grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>(start));
  }

 private:
  static constexpr char kName[] = "ListModels";
  static constexpr char kPath[] = "/attendant.v1.EncoderService/ListModels";  // not copied
};

}  // namespace

class EncoderService::Impl {
 public:
  explicit Impl(ServiceContext context)
      : context_(std::move(context)),
        row_plans_(context_),
        models_(context_, row_plans_),
        entrance_(context_, models_),
        registered_(entrance_) {
    PrepareFaults();
  }

  RegisteredMethods& registered() { return registered_; }
  CallEntrance& entrance() { return entrance_; }
  const ServiceContext& context() const { return context_; }
  RowPlans& row_plans() { return row_plans_; }

 private:
  const ServiceContext context_;
  RowPlans row_plans_;
  const ModelMethods models_;
  CallEntrance entrance_;
  RegisteredMethods registered_;
};

EncoderService::EncoderService(ServiceContext context)
    : impl_(std::make_unique<Impl>(std::move(context))) {}

EncoderService::~EncoderService() = default;

grpc::Service* EncoderService::service() { return &impl_->registered(); }

grpc::CallbackGenericService* EncoderService::generic_service() { return &impl_->entrance(); }

std::unique_ptr<BatchRunner<ServiceJob>> EncoderService::MakeRunner(int instance) {
  const ThreadPlan& plan = impl_->context().thread_plan;
  const int copy = plan.CopyOf(instance);
  if (!plan.nodes.empty()) BindToNode(plan.nodes[copy]);
  return std::make_unique<BatchExecutor>(impl_->context(), copy, impl_->row_plans());
}

void EncoderService::Drain() { impl_->entrance().Drain(); }

}  // namespace attendant::server
