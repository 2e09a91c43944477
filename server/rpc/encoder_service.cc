#include "server/rpc/encoder_service.h"

#include <utility>

#include "server/execution/batch_executor.h"
#include "server/execution/row_plans.h"
#include "server/host/node_binding.h"
#include "server/rpc/model_service.h"
#include "server/rpc/payload_methods.h"

namespace attendant::server {

class EncoderService::Impl {
 public:
  explicit Impl(ServiceContext context)
      : context_(std::move(context)),
        row_plans_(context_),
        models_(context_, row_plans_),
        payload_methods_(context_) {}

  ModelService& models() { return models_; }
  PayloadMethods& payload_methods() { return payload_methods_; }
  const ServiceContext& context() const { return context_; }
  RowPlans& row_plans() { return row_plans_; }

 private:
  const ServiceContext context_;
  RowPlans row_plans_;
  ModelService models_;
  PayloadMethods payload_methods_;
};

EncoderService::EncoderService(ServiceContext context)
    : impl_(std::make_unique<Impl>(std::move(context))) {}

EncoderService::~EncoderService() = default;

grpc::Service* EncoderService::service() { return &impl_->models(); }

grpc::CallbackGenericService* EncoderService::generic_service() {
  return &impl_->payload_methods();
}

std::unique_ptr<BatchRunner> EncoderService::MakeRunner(int instance) {
  const ThreadPlan& plan = impl_->context().thread_plan;
  const int copy = plan.CopyOf(instance);
  if (!plan.nodes.empty()) BindToNode(plan.nodes[copy]);
  return std::make_unique<BatchExecutor>(impl_->context(), copy, impl_->row_plans());
}

void EncoderService::Drain() { impl_->payload_methods().Drain(); }

}  // namespace attendant::server
