// The limits and shared objects that every call of the service uses.
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

// The server's settings, and the limit that follows from them and the models.
struct ServiceLimits : Settings {
  int64_t max_request_bytes = 0;  // receive cap, from max_request_tokens and the widest model
};

// Everything outlives the service.
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
  ServerSecrets secrets = {};    // callers with a token are told apart by it
  ResultCache* cache = nullptr;  // null: every request is computed
};

}  // namespace attendant::server
