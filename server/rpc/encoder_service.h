// attendant.v1.EncoderService, grpc.health.v1.Health and reflection: every method as a callback
// reactor over raw slices, which decides when a body is read.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <memory>

#include "server/batching/batch_runner.h"
#include "server/models/health_states.h"
#include "server/request/quick_method.h"
#include "server/request/service_context.h"

namespace attendant::server {

class EncoderService {
 public:
  explicit EncoderService(ServiceContext context);
  ~EncoderService();

  // Every call arrives here. An unknown method is UNIMPLEMENTED before a read.
  grpc::CallbackGenericService* generic_service();

  // Both live as long as the service. With the context, other doors answer calls as this one does.
  HealthStates& health();
  const MethodContext& method_context() const;

  // Runs batches of this service's jobs on `thread_plan.threads_per_instance` threads; one per
  // instance, made on its thread, which it binds to the instance's node first.
  std::unique_ptr<BatchRunner<ServiceJob>> MakeRunner(int instance = 0);

  // To be called after Admission::Close: every EncodeStream takes no further item and ends with
  // UNAVAILABLE once its accepted items are answered, so that idle streams do not hold up the
  // drain. Any thread.
  void Drain();

  // See OpenStreams. Any thread.
  int64_t ShedUncharged();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
