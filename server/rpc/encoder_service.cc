#include "server/rpc/encoder_service.h"

#include <utility>

#include "server/execution/batch_executor.h"
#include "server/execution/fault.h"
#include "server/host/node_binding.h"
#include "server/rpc/call_entrance.h"

namespace attendant::server {

class EncoderService::Impl {
 public:
  explicit Impl(ServiceContext context)
      : context_(std::move(context)), entrance_(context_, health_) {
    PrepareFaults();
  }

  HealthStates& health() { return health_; }
  CallEntrance& entrance() { return entrance_; }
  const ServiceContext& context() const { return context_; }
  const MethodContext& method_context() const { return method_context_; }

 private:
  const ServiceContext context_;
  HealthStates health_;
  const MethodContext method_context_{context_, health_};
  CallEntrance entrance_;
};

EncoderService::EncoderService(ServiceContext context)
    : impl_(std::make_unique<Impl>(std::move(context))) {}

EncoderService::~EncoderService() = default;

grpc::CallbackGenericService* EncoderService::generic_service() { return &impl_->entrance(); }

std::unique_ptr<BatchRunner<ServiceJob>> EncoderService::MakeRunner(int instance) {
  const ThreadPlan& plan = impl_->context().thread_plan;
  if (!plan.nodes.empty()) BindToNode(plan.nodes[plan.CopyOf(instance)]);
  return std::make_unique<BatchExecutor>(impl_->context(), instance);
}

HealthStates& EncoderService::health() { return impl_->health(); }

const MethodContext& EncoderService::method_context() const { return impl_->method_context(); }

void EncoderService::Drain() { impl_->entrance().Drain(); }

int64_t EncoderService::ShedUncharged() { return impl_->entrance().ShedUncharged(); }

}  // namespace attendant::server
