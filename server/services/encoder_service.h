// attendant.v1.EncoderService: payload methods as generic callback reactors over raw slices, the
// small ones on generated messages.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/codegen/service_type.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/numa_topology.h"
#include "engine/layers/row_plan.h"
#include "server/admission/admission.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batch_runner.h"
#include "server/batching/clock.h"
#include "server/metrics/server_metrics.h"
#include "server/services/memory_store.h"
#include "server/services/served_model.h"

namespace attendant::server {

struct ServiceLimits {
  int64_t max_request_tokens = 16384;
  int64_t max_answer_bytes = int64_t{256} << 20;
  int64_t max_request_bytes = 0;  // receive cap, from max_request_tokens and the widest model
  int64_t max_batch_tokens = 1024;
  absl::Duration receive_timeout = absl::Seconds(10);
  absl::Duration stream_idle_timeout = absl::Minutes(5);
  int stream_window = 16;
  bool reject_nonfinite = false;
};

struct ThreadPlan {
  int instances = 1;
  int threads_per_instance = 1;
  RowPolicy row_policy = RowPolicy::kTeam;

  // The NUMA nodes that instances are bound to, each of which has a copy of the weights. Empty: no
  // instance is bound, and one copy serves all.
  std::vector<NumaNode> nodes = {};
  std::vector<int> copy_of_instance = {};  // its place in `nodes`

  int copies() const { return nodes.empty() ? 1 : static_cast<int>(nodes.size()); }
  int CopyOf(int instance) const { return nodes.empty() ? 0 : copy_of_instance[instance]; }
};

// What the service works with; everything outlives it.
struct ServiceContext {
  const ServedModels& models;
  Admission& admission;
  BatchQueue& queue;
  ServerMetrics& metrics;
  MemoryStore& memories;
  Clock& clock;
  ServiceLimits limits;
  ThreadPlan thread_plan;
};

class EncoderService {
 public:
  explicit EncoderService(ServiceContext context);
  ~EncoderService();

  // To be registered with the same grpc::ServerBuilder: the ordinary methods, and the generic
  // service that the payload methods (and any unknown one: UNIMPLEMENTED before a read) arrive at.
  grpc::Service* service();
  grpc::CallbackGenericService* generic_service();

  // Runs batches of this service's jobs on `thread_plan.threads_per_instance` threads; one per
  // instance, made on its thread, which it binds to the instance's node first.
  std::unique_ptr<BatchRunner> MakeRunner(int instance = 0);

  // To be called after Admission::Close: every EncodeStream takes no further item and ends with
  // UNAVAILABLE once its accepted items are answered, so that idle streams do not hold up the
  // drain. Any thread.
  void Drain();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
