// Limits and shared objects used by every call of the service.
#pragma once

#include <cstdint>

#include "server/admission/admission.h"
#include "server/base/clock.h"
#include "server/base/worker_threads.h"
#include "server/batching/batch_queue.h"
#include "server/cache/result_cache.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/host/thread_plan.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_table.h"
#include "server/security/server_secrets.h"
#include "server/settings/settings.h"

namespace attendant::server {

// The server's settings, and the limit that follows from them and from the models.
struct ServiceLimits : Settings {
  int64_t max_request_bytes = 0;  // receive limit, from max_request_tokens and the widest model
};

// All objects outlive the service.
struct ServiceContext {
  const ModelTable& models;
  Admission& admission;
  BatchQueue& queue;
  ServerMetrics& metrics;
  CrossKvStore& cross_kv;
  Clock& clock;
  WorkerThreads& workers;
  ServiceLimits limits;
  ThreadPlan thread_plan;
  ServerSecrets secrets = {};    // tell clients with tokens apart
  ResultCache* cache = nullptr;  // null: compute every request
};

}  // namespace attendant::server
