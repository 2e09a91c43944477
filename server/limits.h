// Limits of the server's parts, from its settings.
#pragma once

#include <cstdint>

#include "server/admission/admission.h"
#include "server/batching/batch_policy.h"
#include "server/batching/batch_queue.h"
#include "server/host/memory_limit.h"
#include "server/host/thread_plan.h"
#include "server/http/http_connections.h"
#include "server/settings/settings.h"

namespace attendant::server {

QueueLimits QueueLimitsOf(const Settings& settings);

BatchLimits BatchLimitsOf(const Settings& settings, const ThreadPlan& plan);

// `total`, and the part of it that one peer alone leaves free.
BudgetLimits WithReserve(int64_t total, const Settings& settings);

// Without the memory for requests, which is known once the models are.
AdmissionLimits AdmissionLimitsOf(const Settings& settings, const MemoryLimit& limit);

// `limits`, those of the process, with what the settings say.
HttpLimits HttpLimitsOf(const Settings& settings, HttpLimits limits);

}  // namespace attendant::server
