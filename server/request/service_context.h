// The limits and shared objects that every call of the service uses.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/base/clock.h"
#include "server/batching/batch_queue.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/host/thread_plan.h"
#include "server/metrics/server_metrics.h"
#include "server/models/model_table.h"
#include "server/security/server_secrets.h"
#include "server/settings/network.h"

namespace attendant::server {

struct ServiceLimits {
  int64_t max_request_tokens = 16384;
  int64_t max_answer_bytes = int64_t{256} << 20;
  int64_t max_request_bytes = 0;  // receive cap, from max_request_tokens and the widest model
  int64_t max_batch_tokens = 1024;
  absl::Duration max_batch_seconds = absl::Milliseconds(25);
  // A body is ended after the time-out and a second for each `min_receive_rate` bytes.
  absl::Duration receive_timeout = absl::Seconds(10);
  int64_t min_receive_rate = int64_t{256} << 10;
  absl::Duration send_timeout = absl::Seconds(30);     // from the end of a request until OnDone
  absl::Duration slow_request = absl::ZeroDuration();  // logged as a warning from then on; 0: none
  absl::Duration stream_idle_timeout = absl::Minutes(5);
  int stream_window = 16;
  bool reject_nonfinite = false;
  std::vector<Network> trusted_proxies = {};
};

// Everything outlives the service.
struct ServiceContext {
  const ModelTable& models;
  Admission& admission;
  BatchQueue& queue;
  ServerMetrics& metrics;
  CrossKvStore& cross_kv;
  Clock& clock;
  ServiceLimits limits;
  ThreadPlan thread_plan;
  ServerSecrets secrets = {};  // callers with a token are told apart by it
};

}  // namespace attendant::server
